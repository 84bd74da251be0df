package turn

import (
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
)

// Metrics are callbacks for events of turns. They are called from several goroutines and must not block. Any may be nil.
// After a crash an event can be reported again.
type Metrics struct {
	// HistoryHidden is called when the oldest exchanges of a session were hidden from the model, see WithHistoryLimit.
	HistoryHidden func(session string, h Hidden)
}

// WithMetrics sets callbacks for metrics. The default is none.
func WithMetrics(m Metrics) Option { return func(o *options) { o.metrics = m } }

// reportHidden logs that exchanges were hidden and calls the metric.
func (b *binding) reportHidden(c *processors.Context, h Hidden) {
	c.Logger().Info("history limit: the oldest exchanges of a session are hidden from the model",
		zap.String("group", string(c.Group())), zap.String("session", c.Key()), zap.Int("messages", h.Messages),
		zap.Int("bytes", h.Bytes), zap.Bool("summarized", h.Summarized))
	if b.metrics.HistoryHidden != nil {
		b.metrics.HistoryHidden(c.Key(), h)
	}
}
