package think

import (
	"bytes"
	"errors"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/responder"
	"github.com/turntable-streams/turntable/topics"
)

// failure returns the record of think-dlq for a failed step, which ends its turn. The value is the input unchanged; the
// reason, and what the calls of the step cost, are in the headers.
func (w *Worker) failure(r processors.Inbound, cause error, cost *float64) processors.Outbound {
	reason := truncated(cause.Error())
	w.rules.Logger.Warn("step failed", zap.String("agent", w.topics.Agent), zap.Int32("partition", r.Partition),
		zap.Int64("offset", r.Offset), zap.String("reason", reason))
	headers := w.steps.ErrorHeaders(r, reason)
	headers[topics.HeaderID] = []byte(responder.KeyOf(r) + failureSuffix)
	if errors.Is(cause, errLate) || errors.Is(cause, errNotAdmitted) {
		headers[topics.HeaderReason] = []byte(topics.ReasonDeadline)
	}
	if errors.Is(cause, ErrEmpty) {
		headers[topics.HeaderReason] = []byte(topics.ReasonEmpty)
	}
	if cost != nil {
		headers[topics.HeaderCost] = topics.AppendCost(nil, *cost)
	}
	return processors.Outbound{
		Topic: w.topics.ThinkDLQ.Name(), Key: string(r.Key), Headers: headers,
		Value: bytes.Clone(r.Value), // the record is remembered; a reference would keep the consumer's whole batch in memory
	}
}

// shorten replaces a record that is too large. A response becomes a failure. A failure loses first the history, then the
// input too, so that at least the reason is written.
func (w *Worker) shorten(r processors.Inbound, in topics.EnrichedMessage) responder.Shorten {
	inputs := []topics.Raw{in.LatestInput, nil}
	return func(out processors.Outbound) (processors.Outbound, bool) {
		if out.Topic == w.topics.ThinkRequestResponse.Name() {
			response := w.topics.ThinkRequestResponse.Codec().Unmarshal(out.Value).Value
			return w.failure(r, errTooLarge, response.ThinkCost), true
		}
		if len(inputs) == 0 {
			return out, false
		}
		reason := string(out.Headers[topics.HeaderErrorReason])
		failure := topics.ThinkFailure{LatestInput: inputs[0], Reason: &reason}
		inputs = inputs[1:]
		short, err := processors.OutboundOf(w.topics.ThinkDLQ, out.Key, failure, "")
		short.Headers = out.Headers
		return short, err == nil
	}
}

// maxReason is the limit of a failure's reason, in bytes. A longer reason could make the record too large by itself.
const maxReason = 4 << 10

func truncated(reason string) string { return truncate.Text(reason, maxReason) }
