package think

import (
	"bytes"
	"strconv"

	"github.com/lovoo/goka"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/internal/settled"
	"github.com/turntable-streams/turntable/topics"
)

// failure is the record of think-dlq for a step that failed, which ends its turn: the input as it came, with the reason
// in headers.
func (w *Worker) failure(r processors.Inbound, cause error) processors.Outbound {
	reason := clipped(cause.Error())
	w.rules.logger.Warn("step has failed", zap.String("agent", w.topics.Agent), zap.Int32("partition", r.Partition),
		zap.Int64("offset", r.Offset), zap.String("reason", reason))
	return processors.Outbound{
		Topic: w.topics.ThinkDLQ.Name(), Key: string(r.Key),
		Value: bytes.Clone(r.Value), // it is remembered, and the consumer's batch must not be
		Headers: goka.Headers{
			topics.HeaderID:                   []byte(keyOf(r) + "/failure"),
			topics.HeaderErrorReason:          []byte(reason),
			topics.HeaderErrorSourceTopic:     []byte(r.Topic),
			topics.HeaderErrorSourcePartition: []byte(strconv.Itoa(int(r.Partition))),
			topics.HeaderErrorSourceOffset:    []byte(strconv.FormatInt(r.Offset, 10)),
			topics.HeaderErrorGroup:           []byte(w.rules.group),
		},
	}
}

// shorten replaces a response that does not fit into a record by a failure, and a failure that does not fit by one
// without the history, and then by one without the input: the reason is what must not be lost.
func (w *Worker) shorten(r processors.Inbound, in topics.EnrichedMessage) settled.Shorten {
	inputs := []topics.Raw{in.LatestInput, nil}
	return func(out processors.Outbound) (processors.Outbound, bool) {
		if out.Topic == w.topics.ThinkRequestResponse.Name() {
			return w.failure(r, errTooLarge), true
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

// maxReason bounds the reason of a failure, in bytes: beside a larger one nothing might fit into a record.
const maxReason = 4 << 10

func clipped(reason string) string { return truncate.Text(reason, maxReason) }
