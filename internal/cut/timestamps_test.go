package cut

import (
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

// A reader that sorts records of several topics by timestamp sees a cause before its effects, and a foreign timestamp moves
// no other one far.
func TestTimestampsFollowTheCausalOrder(t *testing.T) {
	topics := []string{"a", "b", "c"}
	rapid.Check(t, func(t *rapid.T) {
		now := time.UnixMicro(rapid.Int64Range(1, 1<<50).Draw(t, "now"))
		cause, causeTopic := time.Time{}, rapid.SampledFrom(topics).Draw(t, "topic of the cause")
		if rapid.Bool().Draw(t, "caused by a record") {
			cause = time.UnixMilli(now.UnixMilli() + rapid.OneOf(
				rapid.Int64Range(-3, 3), rapid.Int64Range(-1, 1), rapid.Int64Range(900, 1100), rapid.Int64Range(-1<<50, 1<<50),
			).Draw(t, "cause"))
		}
		sent := rapid.SliceOfN(rapid.SampledFrom(topics), 1, 10).Draw(t, "topics")

		var stamps timestamps
		last, lastTopic := stamps.first(sent[0], now, causeTopic, cause), sent[0]
		require.GreaterOrEqual(t, last.UnixMilli(), now.UnixMilli())
		require.LessOrEqual(t, last.Sub(now), maxAhead+time.Millisecond)
		if !cause.IsZero() && cause.Sub(now) <= maxAhead {
			require.False(t, last.Before(cause))
			require.True(t, sent[0] == causeTopic || last.After(cause))
		} else {
			require.Equal(t, now.UnixMilli(), last.UnixMilli())
		}
		first, changes := last, 0
		for _, topic := range sent[1:] {
			at := stamps.next(topic)
			require.False(t, at.Before(last))
			if topic != lastTopic {
				changes++
				require.True(t, at.After(last))
			}
			last, lastTopic = at, topic
		}
		require.Equal(t, time.Duration(changes)*time.Millisecond, last.Sub(first), "no more than needed")
	})
}

func TestOutputsOfACallbackCarryItsTimestamps(t *testing.T) {
	noon := time.UnixMilli(1_700_000_000_000)
	later := noon.Add(7 * time.Millisecond)
	for name, c := range map[string]struct {
		cause time.Time
		timer string
		first time.Time
	}{
		"from now":                             {noon.Add(-time.Hour), "", noon},
		"after a cause that is slightly ahead": {later, "", later.Add(time.Millisecond)},
		"not after a foreign one":              {noon.Add(time.Hour), "", noon},
		"a deadline from now":                  {noon, "in", noon},
	} {
		t.Run(name, func(t *testing.T) {
			s, inGoka, _, ctx := wrapped(t, ProducerOptions{}, goka.Output("other", codec.String()))
			w := ctx.(*callbackContext).wrap
			w.Clock, w.Timer, inGoka.at = clock.NewFake(noon), c.timer, c.cause
			ctx.EmitWithID("out", "u", "1", "id")
			ctx.Emit("out", "u", "2")
			ctx.EmitWithHeaders("other", "u", "3", goka.Headers{"a": nil})
			ctx.EmitWithID("out", "u", "4", "id")
			ctx.SetValue("row")
			for _, after := range []int{0, 0, 1, 2} {
				require.Equal(t, c.first.Add(time.Duration(after)*time.Millisecond), s.next(t).Timestamp)
			}
			s.Seal()
			require.Zero(t, s.next(t).Timestamp, "a row is read by its offset")
		})
	}
}

// Goka itself sends records of the loop topic; the timestamp reaches the producer in a private header.
func TestProducerTakesTheTimestampOfAPrivateHeader(t *testing.T) {
	s := onLine(t, ProducerOptions{})
	at := time.UnixMilli(1_700_000_000_123)
	s.EmitWithHeaders("g-loop", "k", []byte("1"), goka.Headers{runtimeapi.HeaderTimestamp: runtimeapi.TimestampHeader(at)})
	m := s.next(t)
	require.Equal(t, at, m.Timestamp)
	require.Empty(t, m.Headers)
	s.EmitWithHeaders("g-loop", "k", []byte("1"), goka.Headers{runtimeapi.HeaderTimestamp: []byte("1")})
	require.Zero(t, s.next(t).Timestamp)
}
