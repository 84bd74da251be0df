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
