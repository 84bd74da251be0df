package responder_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/responder"
	"github.com/turntable-streams/turntable/topics"
)

// paper keeps what is published; limit bounds a value.
type paper struct {
	records []processors.Outbound
	limit   int
	err     error
}

func (p *paper) Publish(_ context.Context, records ...processors.Outbound) error {
	if p.err != nil {
		return p.err
	}
	for _, r := range records {
		if len(r.Value) > p.limit {
			return processors.ErrTooLarge
		}
		p.records = append(p.records, r)
	}
	return nil
}

func newResults(to *paper) *responder.Results[string] {
	return responder.NewResults[string](to, responder.DefaultBounds, clock.NewFake(time.UnixMilli(1)), zap.NewNop())
}

func recordOf(value string) processors.Outbound {
	return processors.Outbound{
		Topic: "results", Key: "s", Value: []byte(value), Headers: goka.Headers{"turntable.id": []byte("t/1")},
	}
}

func returning(r processors.Outbound) func() (processors.Outbound, error) {
	return func() (processors.Outbound, error) { return r, nil }
}

func halved(r processors.Outbound) (processors.Outbound, bool) {
	r.Value = r.Value[:len(r.Value)/2]
	return r, len(r.Value) > 0
}

func TestSettledCallIsNotMadeAgain(t *testing.T) {
	to, calls := &paper{limit: 3}, 0
	s := newResults(to)
	for range 2 {
		require.NoError(t, s.Settle(t.Context(), "a", halved, func() (processors.Outbound, error) {
			calls++
			return recordOf("12345678"), nil
		}))
	}
	require.Equal(t, 1, calls)
	require.Equal(t, []processors.Outbound{recordOf("12"), recordOf("12")}, to.records, "its record is published again")
}

func TestRecordThatNothingShorterReplacesIsAnError(t *testing.T) {
	to := &paper{limit: -1}
	s := newResults(to)
	require.ErrorIs(t, s.Settle(t.Context(), "a", halved, returning(recordOf("1234"))), processors.ErrTooLarge)
	require.ErrorIs(t, s.Publish(t.Context(), recordOf("1234"), halved), processors.ErrTooLarge)
}

func TestInterruptedCallIsMadeAgain(t *testing.T) {
	to, stopped := &paper{limit: 9}, errors.New("stopped")
	s := newResults(to)
	err := s.Settle(t.Context(), "a", halved, func() (processors.Outbound, error) { return recordOf("1"), stopped })
	require.ErrorIs(t, err, stopped)
	require.Empty(t, to.records)
	require.NoError(t, s.Settle(t.Context(), "a", halved, returning(recordOf("2"))))
	require.Equal(t, []processors.Outbound{recordOf("2")}, to.records)
}

func TestRecordThatWasNotPublishedIsPublishedByTheNextSettle(t *testing.T) {
	to := &paper{limit: 9, err: processors.ErrPublisherClosed}
	s := newResults(to)
	require.ErrorIs(t, s.Settle(t.Context(), "a", halved, returning(recordOf("1"))), processors.ErrPublisherClosed)
	to.err = nil
	require.NoError(t, s.Settle(t.Context(), "a", halved, returning(recordOf("2"))))
	require.Equal(t, []processors.Outbound{recordOf("1")}, to.records)
}

func TestKeyWithoutARecordIsSettledToo(t *testing.T) {
	to, calls := &paper{limit: 9}, 0
	s := newResults(to)
	for range 2 {
		require.NoError(t, s.Settle(t.Context(), "a", halved, func() (processors.Outbound, error) {
			calls++
			return processors.Outbound{}, nil
		}))
	}
	require.Equal(t, 1, calls)
	require.Empty(t, to.records)
}

// A record that package archive has moved keeps its key, and so the IDs of its answers.
func TestKeyOfARecordIsWhereItWasFirstWritten(t *testing.T) {
	t.Parallel()
	r := processors.Inbound{Topic: "in", Partition: 1, Offset: 2}
	require.Equal(t, "in/1/2", responder.KeyOf(r))
	r.Headers = []processors.Header{{Name: topics.HeaderFirstAt, Value: []byte("3/7")}}
	require.Equal(t, "in/3/7", responder.KeyOf(r))
}
