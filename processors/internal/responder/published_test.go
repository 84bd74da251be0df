package responder_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/responder"
)

var noon = time.Date(2026, 6, 20, 12, 0, 0, 0, time.UTC)

// log is a partition of a topic. Its records are one minute apart; the record at offset 0 was written at noon.
type log struct {
	ids  []string
	read int // records passed to a caller
	err  error
}

func (l *log) OffsetAt(_ string, _ int32, since time.Time) (int64, error) {
	minutes := int64(since.Sub(noon) / time.Minute)
	return min(max(minutes, 0), int64(len(l.ids))), l.err
}

func (l *log) ReplayFrom(
	ctx context.Context, _ string, _ int32, begin int64, take func(context.Context, processors.Inbound) bool,
) (int64, error) {
	if l.err != nil {
		return 0, l.err
	}
	for at := begin; at < int64(len(l.ids)); at++ {
		l.read++
		r := processors.Inbound{Offset: at, Headers: []processors.Header{{Name: "turntable.id", Value: []byte(l.ids[at])}}}
		if !take(ctx, r) {
			return at + 1, nil
		}
	}
	return int64(len(l.ids)), nil
}

func whole(id string) string { return id }

// at returns the time of a step whose result cannot be before the given offset, apart from the clocks' skew.
func at(offset int) time.Time {
	return noon.Add(time.Duration(offset)*time.Minute + responder.ClockSkew)
}

func TestFindsARecordThatWasWrittenSinceTheStep(t *testing.T) {
	l := &log{ids: []string{"a", "b", "", "c"}}
	x := responder.NewPublished(l, whole)
	for name, want := range map[string]bool{"a": false, "b": true, "c": true, "d": false} {
		found, err := x.Contains(t.Context(), "out", 0, name, at(1))
		require.NoError(t, err)
		require.Equal(t, want, found, name)
	}
	l.ids = append(l.ids, "d")
	found, err := x.Contains(t.Context(), "out", 0, "d", at(1))
	require.NoError(t, err)
	require.True(t, found, "the index reads on")
	found, err = x.Contains(t.Context(), "out", 0, "a", at(0))
	require.NoError(t, err)
	require.True(t, found, "the index reads what lies before")
}

func TestReadsEachRecordOnce(t *testing.T) {
	l := &log{}
	for i := range 1000 {
		l.ids = append(l.ids, strconv.Itoa(i))
	}
	x := responder.NewPublished(l, whole)
	for i := range 1000 {
		_, err := x.Contains(t.Context(), "out", 0, "step-"+strconv.Itoa(i), at(i))
		require.NoError(t, err)
	}
	require.Equal(t, 1000, l.read)
}

func TestFailedReadIsRepeated(t *testing.T) {
	broken := errors.New("no leader")
	l := &log{ids: []string{"a"}, err: broken}
	x := responder.NewPublished(l, whole)
	_, err := x.Contains(t.Context(), "out", 0, "a", at(0))
	require.ErrorIs(t, err, broken)
	l.err = nil
	found, err := x.Contains(t.Context(), "out", 0, "a", at(0))
	require.NoError(t, err)
	require.True(t, found)
}

// The answer is that of a search through the whole partition, whatever was read before, and whatever the limit.
func TestContainsFindsWhatASearchFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &log{}
		x := responder.NewPublished(l, whole).WithLimit(rapid.IntRange(0, 12).Draw(t, "limit"))
		names := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", "h"})
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) { l.ids = append(l.ids, names.Draw(t, "id")) },
			"look": func(t *rapid.T) {
				name, begin := names.Draw(t, "name"), rapid.IntRange(0, len(l.ids)).Draw(t, "begin")
				found, err := x.Contains(context.Background(), "out", 0, name, at(begin))
				if err != nil {
					t.Fatal(err)
				}
				first := false // anywhere
				since := false
				for i, id := range l.ids {
					first = first || id == name
					since = since || i >= begin && id == name
				}
				if since && !found || found && !first {
					t.Fatalf("found %v, want %v", found, since)
				}
			},
		})
	})
}
