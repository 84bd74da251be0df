package turn

import (
	"fmt"
	"strconv"

	"github.com/lovoo/goka"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// binding connects the pure transition to Goka: it decodes, calls apply, emits the effects and writes the row.
type binding struct {
	topics topics.Catalog
	rules  rules
	cache  *stateCache

	eventsExist func() bool // nil if the rules say it
}

// rulesNow returns the rules with what is known since the processor was made.
func (b *binding) rulesNow() rules {
	r := b.rules
	r.EventsExist = r.EventsExist || b.eventsExist != nil && b.eventsExist()
	return r
}

// encoded is an emit whose value is encoded for its topic.
type encoded struct {
	stream  goka.Stream
	key, id string
	raw     codec.Encoded
	// deadlineMS is 0 for a record without a deadline. Steps and calls have one.
	deadlineMS int64
}

func (*encoded) effect() {}

// encode encodes the records among an outcome's effects, in place, and its row.
func (b *binding) encode(out *outcome) (err error) {
	records := make([]encoded, len(out.Effects))
	for i, effect := range out.Effects {
		if e, ok := effect.(emit); ok {
			if records[i], err = b.encodeEmit(e); err != nil {
				return err
			}
			out.Effects[i] = &records[i]
		}
	}
	if out.State != nil {
		out.row, err = turnrow.Table.Marshal(out.State)
	}
	return err
}

func (b *binding) encodeEmit(e emit) (encoded, error) {
	switch v := e.Value.(type) {
	case enriched:
		to := b.topics.EnrichedMessageInput
		if b.rules.Memoir != nil {
			to = b.topics.MemoirLookups
		}
		return encodeFor(e, to, topics.EnrichedMessage(v))
	case called:
		return encodeFor(e, b.topics.ToolUse, topics.ToolUseItem(v))
	case refused:
		return encodeFor(e, b.topics.ToolUseDLQ, topics.ToolUseItem(v))
	case completed:
		return encodeFor(e, b.topics.ToolUseAllComplete, topics.ToolResults(v))
	case toolMessage:
		return encodeFor(e, b.topics.MessageInput, topics.Message(v))
	case compactionRequested:
		return encodeFor(e, b.topics.CompactionRequest, topics.CompactionRequest(v))
	case gateRequested:
		return encodeFor(e, b.topics.GateRequests, topics.GateRequest(v))
	case answered:
		return encodeFor(e, b.topics.MessageOutput, topics.Output(v))
	case sessionEnded:
		return encodeFor(e, b.topics.SessionEnd, topics.SessionEnd(v))
	case forgotten:
		return encoded{stream: b.topics.ThinkRequestResponse.Stream(), key: e.Key, id: e.ID}, nil
	case modelCharged:
		return encodeFor(e, b.topics.ModelCosts, topics.ModelCost(v))
	case streamed:
		return encodeFor(e, b.topics.AgentEvents, topics.AgentEvent(v))
	case replyStreamed:
		return encodeFor(e, b.topics.AgentEvents, topics.AgentEvent(v))
	case toolTook:
		return encodeFor(e, b.topics.ToolUseLatency, topics.ToolLatency(v))
	case memoirSession:
		return encodeFor(e, b.topics.MemoirSessions, topics.MemoirSnapshot(v))
	default:
		return encoded{}, fmt.Errorf("%w: %T has no topic", errBroken, v)
	}
}

func encodeFor[T any](e emit, t topics.Topic[T], v T) (encoded, error) {
	raw, err := t.Codec().Marshal(v)
	if err != nil {
		return encoded{}, fmt.Errorf("turn: encode %s: %w", t.Name(), err)
	}
	return encoded{t.Stream(), e.Key, e.ID, raw, e.DeadlineMS}, nil
}

// perform passes an encoded outcome to Goka.
func (b *binding) perform(c *processors.Context, out outcome) (err error) {
	if b.rules.OrderedOutputs {
		if err := c.OrderOutputs(); err != nil {
			return err
		}
	}
	for _, effect := range out.Effects {
		switch e := effect.(type) {
		case *encoded:
			err = b.emit(c, e)
		case deadLetter:
			err = emitDeadLetter(c, e)
		case Hidden:
			b.reportHidden(c, e)
		}
		if err != nil {
			return err
		}
	}
	for _, p := range out.NewParts {
		if err := c.SetPart(p.Number, p.Value); err != nil {
			return err
		}
	}
	for _, n := range out.UnusedParts {
		if err := c.DeletePart(n); err != nil {
			return err
		}
	}
	switch {
	case !out.Changed:
		return nil
	case out.State == nil:
		return c.Delete()
	default:
		return c.SetValue(out.row)
	}
}

func (b *binding) emit(c *processors.Context, e *encoded) error {
	if e.deadlineMS == 0 {
		return c.EmitWithID(e.stream, e.key, e.raw, e.id)
	}
	headers := goka.Headers{
		topics.HeaderID: []byte(e.id), topics.HeaderDeadline: topics.AppendDeadline(nil, e.deadlineMS),
	}
	answers := b.topics.ThinkRequestResponse.Stream()
	if e.stream == b.topics.ToolUse.Stream() {
		answers = b.topics.ToolUseResult.Stream()
	}
	if from, repeated := c.AnswersFrom(answers); repeated {
		headers[topics.HeaderAnswersFrom] = strconv.AppendInt(nil, from, 10)
	}
	return c.Emit(e.stream, e.key, e.raw, headers)
}

func emitDeadLetter(c *processors.Context, l deadLetter) error {
	h := l.Held
	if h == nil {
		return c.DeadLetter(l.Reason)
	}
	headers := make(goka.Headers, len(h.Headers))
	for _, header := range h.Headers {
		headers[string(header.Name)] = header.Value
	}
	return c.DeadLetterOther(processors.Letter{
		Topic: h.Topic, Partition: h.Partition, Offset: h.Offset,
		Key: c.Key(), Value: h.Value, Headers: headers, Reason: l.Reason,
	})
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

// maxLogged bounds the texts of a record in a log line, in bytes.
const maxLogged = 256
