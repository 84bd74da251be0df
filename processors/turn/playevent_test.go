package turn

import (
	"strconv"
	"time"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// recordOption changes a record on its way in.
type recordOption func(*record)

func header(name, value string) recordOption {
	return func(r *record) {
		r.Headers = append(r.Headers, &turnrow.Header{Name: []byte(name), Value: []byte(value)})
		if name == topics.HeaderID {
			r.Own, r.Cause = true, value
		}
	}
}

func stamped(at time.Time) recordOption { return func(r *record) { r.At = at } }

// event makes an event of a record's bytes; ok is false for poison. A nil value is a tombstone.
func (p *play) event(topic string, value []byte, opts ...recordOption) (e event, ok bool) {
	p.offset++
	r := &record{
		Session: p.key, Cause: "offset-" + strconv.FormatInt(p.offset, 10), At: p.now, Value: value,
		Topic: agent + "-" + topic, Offset: p.offset,
	}
	for _, o := range opts {
		o(r)
	}
	return decode(p.topics, topic, r)
}

func decode(c topics.Catalog, topic string, r *record) (event, bool) {
	switch topic {
	case "message-input":
		d := c.MessageInput.Codec().Unmarshal(r.Value)
		return messageArrived{r, d.Value}, d.Err == nil
	case "think-request-response":
		d := c.ThinkRequestResponse.Codec().Unmarshal(r.Value)
		return thinkResponded{r, d.Value}, d.Err == nil
	case "think-dlq":
		d := c.ThinkDLQ.Codec().Unmarshal(r.Value)
		return thinkFailed{r, d.Value}, d.Err == nil
	case "tool-use-result":
		d := c.ToolUseResult.Codec().Unmarshal(r.Value)
		return toolAnswered{r, d.Value}, d.Err == nil
	case "tool-use-dlq":
		d := c.ToolUseDLQ.Codec().Unmarshal(r.Value)
		return toolFailed{r, d.Value}, d.Err == nil
	case "reply-to":
		d := c.ReplyTo.Codec().Unmarshal(r.Value)
		return routeGiven{r, d.Value}, d.Err == nil
	case "session-control":
		d := c.SessionControl.Codec().Unmarshal(r.Value)
		return controlled{r, d.Value}, d.Err == nil
	case "compaction-result":
		d := c.CompactionResult.Codec().Unmarshal(r.Value)
		return compacted{r, d.Value}, d.Err == nil
	case "gate-outcomes":
		d := c.GateOutcomes.Codec().Unmarshal(r.Value)
		return gateEnded{r, d.Value}, d.Err == nil
	case "gate-requests":
		d := c.GateRequests.Codec().Unmarshal(r.Value)
		return gateOpened{r, d.Value}, d.Err == nil
	default:
		panic(topic)
	}
}
