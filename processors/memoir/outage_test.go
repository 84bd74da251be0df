package memoir

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/rows"
)

// outage is a group without a worker. It checks that every session that ends has its first snapshot in time.
type outage struct {
	*harness
	read  map[string]time.Time // when the end of a session was read the last time before its first snapshot
	first map[string]bool      // the ends that have had their first snapshot
	dead  map[string]bool
	later int // further passes
	twice bool
}

func newOutage(t tb, change ...func(*Config)) *outage {
	return &outage{harness: newHarness(t, change...), read: map[string]time.Time{}, first: map[string]bool{}, dead: map[string]bool{}}
}

func (o *outage) apply(e event) {
	o.TB.Helper()
	if s, ok := e.(sessionEnded); ok && !o.first[*s.Snapshot.SessionID] {
		o.read[*s.Snapshot.SessionID] = o.Now
	}
	for _, effect := range o.handle(e) {
		if effect.Held != nil {
			f := deadOf(o.TB, effect)
			require.True(o.TB, o.first[f.End], "%s is given up before its first snapshot", f.End)
			require.NotEmpty(o.TB, f.Value)
			o.dead[f.End] = true
			continue
		}
		end, pass, ok := passOf(sentOf(o.TB, effect).ID)
		require.True(o.TB, ok)
		if pass > 1 {
			o.later++
			continue
		}
		require.True(o.TB, o.twice || !o.first[end], "%s has a second first snapshot", end)
		if !o.first[end] {
			require.LessOrEqual(o.TB, o.Now.Sub(o.read[end]), o.config.Patience, end)
		}
		o.first[end] = true
	}
	if o.Row != nil {
		require.LessOrEqual(o.TB, len(o.Read().Pending), o.config.PendingLimit)
		require.LessOrEqual(o.TB, len(o.Parts), o.config.PendingLimit)
	}
}

// advance moves the clock and fires the deadlines on the way.
func (o *outage) advance(d time.Duration) {
	o.TB.Helper()
	end := o.Now.Add(d)
	for o.Row != nil {
		ms, ok := rows.Deadline(o.Row)
		if !ok || ms > end.UnixMilli() {
			break
		}
		o.Now = maxTime(o.Now, ms)
		o.apply(deadlineCame{})
	}
	o.Now = end
}

// check checks that the sessions of which the read ones are all have their snapshot, and are not lost.
func (o *outage) check(ends int) {
	o.TB.Helper()
	require.Len(o.TB, o.first, ends)
	for end := range o.first {
		require.True(o.TB, o.dead[end] || (&transition{row: o.Read()}).find(end) != nil, "%s is neither waiting nor dead-lettered", end)
	}
}

func TestEverySessionHasOneFirstSnapshotInTimeWithoutAWorker(t *testing.T) {
	for _, gap := range []time.Duration{0, time.Second, 11 * time.Second, 5 * time.Minute, 20 * time.Minute, 40 * time.Minute} {
		t.Run(gap.String(), func(t *testing.T) {
			const n = 200
			o := newOutage(t)
			for i := range n {
				o.apply(o.ended(fmt.Sprint("s", i)))
				o.advance(gap)
			}
			o.advance(o.config.Patience)
			o.check(n)
			require.Less(t, len(o.Row), 32<<10)
			o.advance(100 * time.Hour)
			require.Empty(t, o.Parts, "after the last pass nothing is left but digests")
			require.Len(t, o.dead, n)
		})
	}
}

func TestEverySessionHasOneFirstSnapshotInTimeProperty(t *testing.T) {
	gaps := []time.Duration{0, time.Millisecond, time.Second, 11 * time.Second, time.Minute, 31 * time.Minute, 2 * time.Hour}
	rapid.Check(t, func(t *rapid.T) {
		o := newOutage(t, func(c *Config) {
			c.PendingLimit = rapid.IntRange(1, 6).Draw(t, "limit")
			c.Patience = rapid.SampledFrom([]time.Duration{0, time.Second, 10 * time.Second}).Draw(t, "patience")
			c.RememberFor *= 1000
		})
		o.inline = rapid.Bool().Draw(t, "inline")
		o.twice = rapid.Bool().Draw(t, "crashes")
		log, read := []sessionEnded{}, 0
		cut, cutRead := newHarness(t), 0
		for range rapid.IntRange(0, 80).Draw(t, "moves") {
			switch rapid.SampledFrom([]string{"end", "end", "end", "read", "read", "again", "cut", "crash"}).Draw(t, "move") {
			case "end":
				log = append(log, o.ended(fmt.Sprint("s", len(log))))
			case "read":
				if read < len(log) {
					o.apply(log[read])
					read++
				}
			case "again":
				if read > 0 {
					o.apply(log[rapid.IntRange(0, read-1).Draw(t, "which")])
				}
			case "cut":
				cut.Restore(&o.World)
				cutRead = read
			case "crash":
				if o.twice {
					o.Restore(&cut.World)
					read = cutRead
				}
			}
			o.advance(rapid.SampledFrom(gaps).Draw(t, "gap"))
		}
		for _, e := range log[read:] {
			o.apply(e)
		}
		o.advance(o.config.Patience)
		o.check(len(log))
	})
}
