package worker

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// maxReason bounds the reason in the headers of a dead letter, in bytes.
const maxReason = 1024

// DeadLetters returns a function for Config.DeadLetter that writes records unchanged to a topic, with the reason and the
// record's origin in error.* headers. The topic must exist. A record that would be too large with these headers is truncated,
// and its original size is in the header error.truncated.
func DeadLetters(to processors.Publisher, topic, group string) func(ctx context.Context, r Record, reason error) error {
	return func(ctx context.Context, r Record, reason error) error {
		headers := goka.Headers{
			topics.HeaderErrorReason:          []byte(truncate.Text(reason.Error(), maxReason)),
			topics.HeaderErrorSourceTopic:     []byte(r.Topic),
			topics.HeaderErrorSourcePartition: []byte(strconv.Itoa(int(r.Partition))),
			topics.HeaderErrorSourceOffset:    []byte(strconv.FormatInt(r.Offset, 10)),
			topics.HeaderErrorGroup:           []byte(group),
		}
		for _, h := range r.Headers {
			if _, ours := headers[h.Name]; !ours {
				headers[h.Name] = h.Value
			}
		}
		letter, ok := truncate.DeadLetter{Key: string(r.Key), Value: r.Value, Headers: headers}, true
		publish := func() error {
			return to.Publish(ctx, processors.Outbound{Topic: topic, Key: letter.Key, Value: letter.Value, Headers: letter.Headers})
		}
		err := publish()
		for errors.Is(err, processors.ErrTooLarge) {
			if letter, ok = letter.Shorter(); !ok {
				break
			}
			err = publish()
		}
		if err != nil {
			return fmt.Errorf("worker: dead letter of %s/%d offset %d to %s: %w", r.Topic, r.Partition, r.Offset, topic, err)
		}
		return nil
	}
}
