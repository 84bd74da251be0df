package instance_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/instance"
	"github.com/turntable-streams/turntable/internal/store"
)

// alarms is a group whose rows are alarms: "revision@milliseconds", or "revision" alone where none is open. A record
// sets its key's alarm to so many milliseconds after noon, or cancels it. An alarm that goes off is emitted as its
// revision.
type alarms struct {
	codec.Codec[string]
	name string
	// busy and calls show that the callbacks of a partition never overlap: calls is not synchronised on purpose.
	busy  [2]atomic.Bool
	calls [2]int
	lapse atomic.Int64
}

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

const tick = 250 * time.Millisecond

func newAlarms(name string) *alarms { return &alarms{Codec: codec.String(), name: name} }

func (a *alarms) alone(ctx goka.Context, f func()) {
	p := ctx.Partition()
	if !a.busy[p].CompareAndSwap(false, true) {
		a.lapse.Add(1)
	}
	a.calls[p]++
	f()
	a.busy[p].Store(false)
}

func parseAlarm(row string) (revision string, ms int64, ok bool) {
	revision, at, ok := strings.Cut(row, "@")
	ms, _ = strconv.ParseInt(at, 10, 64)
	return revision, ms, ok
}

// Deadline implements store.Timed.
func (a *alarms) Deadline(row []byte) (int64, bool) {
	_, ms, ok := parseAlarm(string(row))
	return ms, ok
}

// OnDeadline implements store.Timed.
func (a *alarms) OnDeadline(ctx goka.Context, _ store.Due) {
	a.alone(ctx, func() {
		row, _ := ctx.Value().(codec.Decoded[string])
		revision, ms, ok := parseAlarm(row.Value)
		if !ok || ms > ctx.Timestamp().UnixMilli() {
			return
		}
		late := ctx.Timestamp().UnixMilli() - ms
		ctx.Emit("out", ctx.Key(), fmt.Sprintf("%s %s +%d by %s", ctx.Key(), revision, late, a.name))
		ctx.SetValue(revision)
	})
}

func (a *alarms) graph() *goka.GroupGraph {
	return goka.DefineGroup("g", goka.Persist(a), goka.Output("out", codec.String()),
		goka.Input("in", codec.String(), func(ctx goka.Context, m any) {
			a.alone(ctx, func() {
				row, _ := ctx.Value().(codec.Decoded[string])
				revision, _, _ := parseAlarm(row.Value)
				n, _ := strconv.Atoi(revision)
				next := strconv.Itoa(n + 1)
				if after, err := strconv.Atoi(m.(codec.Decoded[string]).Value); err == nil {
					next += "@" + strconv.FormatInt(noon.UnixMilli()+int64(after), 10)
				}
				ctx.SetValue(next)
			})
		}))
}

func (a *alarms) start(t testing.TB, brokers []string, at *clock.Fake, dir string) *running {
	t.Helper()
	inst := run(t, instance.Config{Brokers: brokers, Graph: a.graph(), Clock: at, Tick: tick, StorageDir: dir, Sarama: lively})
	inst.ready(t)
	t.Cleanup(func() { require.Zero(t, a.lapse.Load(), "callbacks of a partition overlap") })
	return inst
}

// ticking waits until n partitions have their ticker.
func ticking(t testing.TB, at *clock.Fake, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	require.NoError(t, at.WaitTickers(ctx, n))
}

// set writes alarms and waits until their rows are written: "key after" or "key cancel".
func set(t testing.TB, brokers []string, inst *running, alarms ...string) {
	t.Helper()
	var records []*kgo.Record
	before := map[string]int{}
	writes := map[string]int{}
	revision := func(key string) int {
		v, err := inst.Get(key)
		require.NoError(t, err)
		row, _ := v.(codec.Decoded[string])
		r, _, _ := parseAlarm(row.Value)
		n, _ := strconv.Atoi(r)
		return n
	}
	for _, a := range alarms {
		key, value, _ := strings.Cut(a, " ")
		records = append(records, keyed("in", key, value))
		if writes[key]++; writes[key] == 1 {
			before[key] = revision(key)
		}
	}
	put(t, brokers, records...)
	for key, n := range writes {
		eventually(t, func() bool { return revision(key) == before[key]+n })
	}
}

// fired are the alarms that went off, without who let them.
func fired(t testing.TB, brokers []string, want int) []string {
	t.Helper()
	all := values(take(t, brokers, "out", want))
	for i, v := range all {
		all[i], _, _ = strings.Cut(v, " by ")
	}
	return all
}

// Stock Goka has no timers.
func TestDeadlinesFireOnceUnlessCancelledOrMoved(t *testing.T) {
	t.Parallel()
	t.Run("stock has none", func(t *testing.T) {
		t.Parallel()
		_, brokers := cluster(t, "in", "out")
		put(t, brokers, keyed("in", "a", "-100"))
		stock(t, brokers, newAlarms("").graph(), oldest)
		take(t, brokers, "g-table", 1)
		require.Empty(t, takeIn(t, brokers, "out", 1, time.Second))
	})
	t.Run("fire once, within a tick, never early", func(t *testing.T) {
		t.Parallel()
		_, brokers := cluster(t, "in", "out")
		at := clock.NewFake(noon)
		inst := newAlarms("").start(t, brokers, at, "")
		ticking(t, at, 2)
		a, b, c := sibling("a", 0), sibling("b", 0), sibling("c", 1)
		set(t, brokers, inst, a+" 100", b+" 251", c+" 250")
		at.Advance(tick)
		want := []string{a + " 1 +150", c + " 1 +0"}
		require.ElementsMatch(t, want, fired(t, brokers, 2))
		at.Advance(tick)
		want = append(want, b+" 1 +249")
		require.ElementsMatch(t, want, fired(t, brokers, 3))
		set(t, brokers, inst, a+" 600")
		for range 8 {
			at.Advance(tick)
		}
		set(t, brokers, inst, c+" 1", b+" 1") // due since long: the next tick has them
		at.Advance(tick)
		require.ElementsMatch(t, append(revisions(want), a+" 2", b+" 2", c+" 2"), revisions(fired(t, brokers, 6)))
	})
	t.Run("that were cancelled or moved do not fire", func(t *testing.T) {
		t.Parallel()
		_, brokers := cluster(t, "in", "out")
		at := clock.NewFake(noon)
		inst := newAlarms("").start(t, brokers, at, "")
		ticking(t, at, 2)
		gone, moved, sooner := sibling("gone", 0), sibling("moved", 0), sibling("sooner", 0)
		one, two := sibling("one", 0), sibling("two", 0)
		set(t, brokers, inst, gone+" 100", moved+" 100", sooner+" 9000", one+" 200", two+" 500")
		set(t, brokers, inst, gone+" cancel", moved+" 700", sooner+" 150")
		at.Advance(tick)
		want := []string{one + " 1", sooner + " 2"}
		require.ElementsMatch(t, want, revisions(fired(t, brokers, 2)))
		for i, next := range []string{two + " 1", moved + " 2"} {
			at.Advance(tick)
			want = append(want, next)
			require.ElementsMatch(t, want, revisions(fired(t, brokers, 3+i)))
		}
		at.Advance(time.Hour)
		set(t, brokers, inst, one+" 0")
		at.Advance(tick)
		require.ElementsMatch(t, append(want, one+" 2"), revisions(fired(t, brokers, 5)))
	})
}

// sibling is a key with the prefix that belongs to a partition.
func sibling(prefix string, partition int32) string {
	for codec.PartitionOf(prefix, 2) != partition {
		prefix += "."
	}
	return prefix
}

// revisions cuts how late alarms were.
func revisions(fired []string) []string {
	cut := make([]string, len(fired))
	for i, f := range fired {
		cut[i], _, _ = strings.Cut(f, " +")
	}
	return cut
}

// A deadline's effects are part of a cut: a deadline that was in flight when the process died fires again.
func TestDeadlineInFlightIsNotLost(t *testing.T) {
	t.Parallel()
	c, brokers := oneEach(t, "in", "out", "g-table")
	admin := kadm.NewClient(dial(t, brokers))
	at := clock.NewFake(noon)
	down := newRestarts(t) // so that nothing is done again before the kill
	inst := run(t, instance.Config{
		Brokers: brokers, Graph: newAlarms("").graph(), Clock: at, Tick: tick, StorageDir: t.TempDir(), Sarama: lively,
		Hooks: instance.Hooks{Restart: down.hook},
	})
	inst.ready(t)
	ticking(t, at, 1)
	set(t, brokers, inst, "a 100")
	eventually(t, func() bool { return committedAt(t, admin, "g", "in", 0) == 1 })
	fault := refuse(c, "out")
	rows := written(t, admin, "g-table")
	at.Advance(tick)
	eventually(t, func() bool { return fault.Hits() > 0 })
	put(t, brokers, keyed("in", "b", "cancel"))
	inst.Kill()
	close(down.again)
	require.ErrorIs(t, inst.wait(t), cut.ErrKilled)
	require.Equal(t, rows, written(t, admin, "g-table"))
	fault.Remove()

	newAlarms("").start(t, brokers, at, "")
	require.Equal(t, []string{"a 1 +150"}, fired(t, brokers, 1))
}
