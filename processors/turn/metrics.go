package turn

import (
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// Metrics are callbacks for events of turns. They are called from several goroutines and must not block. Any may be nil.
// After a crash an event can be reported again.
type Metrics struct {
	// HistoryHidden is called when the oldest exchanges of a session were hidden from the model, see Config.HistoryLimit.
	HistoryHidden func(session string, h Hidden)
	// Controlled is called for each record of session-control. action is "cancel", "purge" or "end". A cancel
	// for which there is no message, and an end of a session that cannot end, are reported too, and dead-lettered.
	Controlled func(session, action string)
}

// reportHidden logs that exchanges were hidden and calls the metric.
func (b *binding) reportHidden(c *processors.Context, h Hidden) {
	c.Logger().Info("history limit: the oldest exchanges of a session are hidden from the model",
		zap.String("group", string(c.Group())), zap.String("session", c.Key()), zap.Int("messages", h.Messages),
		zap.Int("bytes", h.Bytes), zap.Bool("summarized", h.Summarized))
	if b.rules.Metrics.HistoryHidden != nil {
		b.rules.Metrics.HistoryHidden(c.Key(), h)
	}
}

// maxLogged bounds the texts of a record in a log line, in bytes.
const maxLogged = 256

// reportControl logs what was cancelled or purged, and calls the metric. The record has no subject, so the line has the
// record's ID: Kafka's ACLs decide who may write session-control.
func (b *binding) reportControl(c *processors.Context, control topics.Control) {
	if control.Action != topics.ActionCancel && control.Action != topics.ActionPurge && control.Action != topics.ActionEnd {
		return
	}
	request := ""
	if control.RequestID != nil {
		request = truncate.Text(*control.RequestID, maxLogged)
	}
	c.Logger().Info("audit", zap.String("action", control.Action), zap.String("agent", b.topics.Agent),
		zap.String("session", c.Key()), zap.String("request_id", request),
		zap.String("record", truncate.Text(c.CauseID(), maxLogged)))
	if b.rules.Metrics.Controlled != nil {
		b.rules.Metrics.Controlled(c.Key(), control.Action)
	}
}
