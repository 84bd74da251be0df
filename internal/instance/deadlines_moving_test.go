package instance_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/cut"
)

// A deadline is stored in the table: it is recovered with it, and fires at once if it is due by then.
func TestDeadlinesSurviveAKill(t *testing.T) {
	t.Parallel()
	for store, dir := range map[string]string{"memory": "", "disk": t.TempDir()} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			_, brokers := cluster(t, "in", "out")
			admin := kadm.NewClient(dial(t, brokers))
			at := clock.NewFake(noon)
			inst := newAlarms("").start(t, brokers, at, dir)
			ticking(t, at, 2)
			set(t, brokers, inst, "a 100", "b 10000", "c 20000", "d 15000")
			set(t, brokers, inst, "d cancel")
			at.Advance(tick)
			require.Equal(t, []string{"a 1"}, revisions(fired(t, brokers, 1)))
			rowsAre(t, brokers, map[string]string{"a": "1", "b": alarm(1, 10000), "c": alarm(1, 20000), "d": "2"})
			eventually(t, func() bool {
				return committedAt(t, admin, "g", "in", 0)+committedAt(t, admin, "g", "in", 1) == 5
			}, "so that no record is done again: it would set its alarm again")
			inst.Kill()
			require.ErrorIs(t, inst.wait(t), cut.ErrKilled)

			at.Advance(11 * time.Second)
			inst = newAlarms("").start(t, brokers, at, dir)
			want := []string{"a 1", "b 1"}
			require.ElementsMatch(t, want, revisions(fired(t, brokers, 2)), "without waiting for a tick")
			ticking(t, at, 2)
			at.Advance(10 * time.Second)
			want = append(want, "c 1")
			require.ElementsMatch(t, want, revisions(fired(t, brokers, 3)))
			set(t, brokers, inst, "a 0", "b 0", "c 0", "d 0")
			at.Advance(tick)
			require.ElementsMatch(t, append(want, "a 2", "b 2", "c 2", "d 3"), revisions(fired(t, brokers, 7)))
		})
	}
}

// alarm is the row of a key whose alarm is so many milliseconds after noon.
func alarm(revision int, ms int64) string { return fmt.Sprintf("%d@%d", revision, noon.UnixMilli()+ms) }

// rowsAre waits until these are the rows in the table. The number of records is not fixed: of the rows that a key had
// within a cut only the last is written.
func rowsAre(t testing.TB, brokers []string, want map[string]string) {
	t.Helper()
	eventually(t, func() bool {
		rows := map[string]string{}
		for _, r := range takeIn(t, brokers, "g-table", 1<<10, 100*time.Millisecond) {
			rows[string(r.Key)] = string(r.Value)
		}
		return maps.Equal(want, rows)
	}, want)
}

// Deadlines move with their partition to another instance, and back.
func TestDeadlinesMoveWithTheirPartition(t *testing.T) {
	t.Parallel()
	_, brokers := cluster(t, "in", "out")
	at := clock.NewFake(noon)
	first := newAlarms("first").start(t, brokers, at, "")
	keys := []string{sibling("a", 0), sibling("b", 1), sibling("c", 0), sibling("d", 1)}
	set(t, brokers, first, keys[0]+" 1000", keys[1]+" 1000", keys[2]+" 60000", keys[3]+" 60000")

	second := newAlarms("second").start(t, brokers, at, "")
	eventually(t, func() bool { return len(first.Health().Lag) == 1 && len(second.Health().Lag) == 1 })
	ticking(t, at, 2)
	at.Advance(time.Second)
	got := take(t, brokers, "out", 2)
	want := []string{keys[0] + " 1", keys[1] + " 1"}
	require.ElementsMatch(t, want, revisions(values(got)))
	require.ElementsMatch(t, []string{"first", "second"}, who(got), "each by its owner")

	first.stop()
	require.NoError(t, first.wait(t))
	eventually(t, func() bool { return len(second.Health().Lag) == 2 })
	ticking(t, at, 2)
	at.Advance(time.Minute)
	got = take(t, brokers, "out", 4)
	require.ElementsMatch(t, append(want, keys[2]+" 1", keys[3]+" 1"), revisions(values(got)))
	require.ElementsMatch(t, []string{"first", "second", "second", "second"}, who(got))
}

func who(records []*kgo.Record) []string {
	names := make([]string, len(records))
	for i, r := range records {
		_, names[i], _ = strings.Cut(string(r.Value), " by ")
	}
	return names
}

// Records and deadlines of the same keys come at the same time: no revision fires twice, none is lost, none that was
// replaced in time fires, and no two callbacks of a partition run at once.
func TestConcurrentRecordsAndDeadlinesOfAKeyFireEachRevisionOnce(t *testing.T) {
	t.Parallel()
	_, brokers := cluster(t, "in", "out")
	at := clock.NewFake(noon)
	inst := newAlarms("").start(t, brokers, at, "")
	ticking(t, at, 2)
	random := rand.New(rand.NewPCG(1, 2))
	producer := dial(t, brokers)
	const keys, rounds = 20, 40
	for round := range rounds {
		records := make([]*kgo.Record, keys)
		for i := range records {
			records[i] = keyed("in", fmt.Sprintf("k%d", i), fmt.Sprint(random.IntN(rounds*int(tick.Milliseconds()))))
		}
		producer.Produce(t.Context(), records[0], nil)
		at.Advance(tick)
		require.NoError(t, producer.ProduceSync(t.Context(), records[1:]...).FirstErr())
		eventually(t, func() bool {
			v, err := inst.Get("k0")
			return err == nil && v != nil && strings.HasPrefix(v.(codec.Decoded[string]).Value, fmt.Sprint(round+1))
		})
	}
	at.Advance(time.Hour)
	ends := make([]string, keys)
	for i := range ends {
		ends[i] = fmt.Sprintf("k%d %d", i, rounds)
	}
	// The last revision of every key fires, whatever became of those before.
	eventually(t, func() bool {
		at.Advance(tick)
		last := map[string]bool{}
		for _, f := range revisions(values(takeIn(t, brokers, "out", rounds*keys, 100*time.Millisecond))) {
			last[f] = true
		}
		for _, end := range ends {
			if !last[end] {
				return false
			}
		}
		return true
	})
	all := revisions(values(takeIn(t, brokers, "out", rounds*keys, 300*time.Millisecond)))
	seen := map[string]bool{}
	for _, f := range all {
		require.False(t, seen[f], "%s fired twice", f)
		seen[f] = true
	}
	t.Logf("%d of %d revisions fired", len(all), rounds*keys)
}
