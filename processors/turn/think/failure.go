package think

import (
	"context"
	"errors"
	"strconv"

	"github.com/lovoo/goka"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clip"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// fail writes a step that failed to think-dlq, which ends its turn: the record as it came, with the reason in headers.
// What does not fit beside the headers goes without its history, and at last without its input: the reason is what must
// not be lost.
func (w *Worker) fail(ctx context.Context, r processors.Inbound, in topics.EnrichedMessage, cause error) error {
	reason := clipped(cause.Error())
	w.rules.logger.Warn("step has failed", zap.String("agent", w.topics.Agent), zap.Int32("partition", r.Partition),
		zap.Int64("offset", r.Offset), zap.String("reason", reason))
	headers := goka.Headers{
		topics.HeaderID:                   []byte(keyOf(r) + "/failure"),
		topics.HeaderErrorReason:          []byte(reason),
		topics.HeaderErrorSourceTopic:     []byte(r.Topic),
		topics.HeaderErrorSourcePartition: []byte(strconv.Itoa(int(r.Partition))),
		topics.HeaderErrorSourceOffset:    []byte(strconv.FormatInt(r.Offset, 10)),
		topics.HeaderErrorGroup:           []byte(w.rules.group),
	}
	t := w.topics.ThinkDLQ
	err := w.publish(ctx, processors.Outbound{Topic: t.Name(), Key: string(r.Key), Value: r.Value, Headers: headers})
	for _, input := range []topics.Raw{in.LatestInput, nil} {
		if !errors.Is(err, processors.ErrTooLarge) {
			return err
		}
		failure := topics.ThinkFailure{LatestInput: input, Reason: &reason}
		short, encodeErr := processors.OutboundOf(t, string(r.Key), failure, "")
		if encodeErr != nil {
			return encodeErr
		}
		short.Headers = headers
		err = w.publish(ctx, short)
	}
	return err
}

// maxReason bounds the reason of a failure, in bytes: beside a larger one nothing might fit into a record.
const maxReason = 4 << 10

func clipped(reason string) string { return clip.Text(reason, maxReason) }
