package worker

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
)

type written struct {
	records []processors.Outbound
	err     error
}

func (w *written) Publish(_ context.Context, records ...processors.Outbound) error {
	w.records = append(w.records, records...)
	return w.err
}

func TestDeadLetterKeepsTheRecordAndNamesItsOrigin(t *testing.T) {
	var to written
	write := DeadLetters(&to, "in-dlq", "workers")
	r := Record{Inbound: processors.Inbound{
		Topic: "in", Partition: 2, Offset: 9, Key: []byte("k"), Value: []byte("v"),
		Headers: []processors.Header{{Name: "turntable.id", Value: []byte("7")}, {Name: "error.reason", Value: []byte("older")}},
	}}
	require.NoError(t, write(t.Context(), r, errBroken))
	require.Len(t, to.records, 1)
	got := to.records[0]
	require.Equal(t, []string{"in-dlq", "k", "v"}, []string{got.Topic, got.Key, string(got.Value)})
	for name, value := range map[string]string{
		"turntable.id": "7", "error.reason": errBroken.Error(), "error.source.topic": "in", "error.source.partition": "2",
		"error.source.offset": "9", "error.group": "workers",
	} {
		require.Equal(t, value, string(got.Headers[name]), name)
	}
	to.err = errors.New("the broker is down")
	require.ErrorIs(t, write(t.Context(), r, errBroken), to.err)
}

// sizedTo refuses records by their size, as KafkaPublisher does.
type sizedTo struct {
	written
	limit int
}

func (s *sizedTo) Publish(ctx context.Context, records ...processors.Outbound) error {
	for _, r := range records {
		size := len(r.Key) + len(r.Value)
		for name, value := range r.Headers {
			size += len(name) + len(value)
		}
		if size > s.limit {
			return processors.ErrTooLarge
		}
	}
	return s.written.Publish(ctx, records...)
}

func TestDeadLetterOfARecordNearTheSizeLimitIsTruncated(t *testing.T) {
	to := &sizedTo{limit: 1 << 20}
	write := DeadLetters(to, "in-dlq", "workers")
	value := make([]byte, to.limit-50)
	require.NoError(t, write(t.Context(), Record{Inbound: processors.Inbound{Topic: "in", Key: []byte("k"), Value: value}}, errBroken))
	require.Len(t, to.records, 1)
	require.Greater(t, len(to.records[0].Value), to.limit-10<<10)
	require.Equal(t, "1048526", string(to.records[0].Headers["error.truncated"]))
	require.Equal(t, errBroken.Error(), string(to.records[0].Headers["error.reason"]))
}
