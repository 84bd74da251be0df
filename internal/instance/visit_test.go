package instance_test

import (
	"context"
	"strconv"
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
)

// visited is a group that counts records to fast, and has a visitor that tells every row to out.
type visited struct{ visits atomic.Int64 }

func (v *visited) graph() *goka.GroupGraph {
	return goka.DefineGroup("g", goka.Persist(codec.String()),
		goka.Output("out", codec.String()), goka.Output("fast", codec.String()),
		goka.Input("in", codec.String(), func(ctx goka.Context, _ any) {
			n := strconv.Itoa(count(ctx.Value()) + 1)
			ctx.Emit("fast", ctx.Key(), n)
			ctx.SetValue(n)
		}),
		goka.Visitor("tell", func(ctx goka.Context, _ any) {
			ctx.Emit("out", ctx.Key(), ctx.Value().(codec.Decoded[string]).Value)
			v.visits.Add(1)
		}))
}

// begin starts a visit whose outputs do not get anywhere, and then has one more record done.
func (v *visited) begin(t testing.TB, brokers []string, visit func() error) (result chan error) {
	t.Helper()
	result = make(chan error, 1)
	go func() { result <- visit() }()
	eventually(t, func() bool { return v.visits.Load() == 3 })
	put(t, brokers, keyed("in", "a", "x"))
	take(t, brokers, "fast", 4)
	return result
}

// A visit's effects are part of a cut, as a record's are.
func TestVisitIsPartOfACut(t *testing.T) {
	t.Parallel()
	seeds := []string{"a", "b", "c"}
	t.Run("stock commits beside it", func(t *testing.T) {
		t.Parallel()
		c, brokers := oneEach(t, "in", "out", "fast", "g-table")
		release := hold(c, "out")
		for _, key := range seeds {
			put(t, brokers, keyed("in", key, "x"))
		}
		v := &visited{}
		p, r := stockProcessor(t, brokers, v.graph(), oldest)
		t.Cleanup(release)
		take(t, brokers, "fast", 3)
		result := v.begin(t, brokers, func() error { return p.VisitAll(context.Background(), "tell", nil) })
		eventually(t, func() bool { return committed(t, brokers, "g", "in", 0) == 4 })
		require.Empty(t, result)
		release()
		require.NoError(t, receive(t, result))
		r.stop()
	})

	ours := func(t *testing.T) (v *visited, inst *running, brokers []string, admin *kadm.Client, release func()) {
		t.Helper()
		c, brokers := oneEach(t, "in", "out", "fast", "g-table")
		for _, key := range seeds {
			put(t, brokers, keyed("in", key, "x"))
		}
		v = &visited{}
		inst = run(t, instance.Config{Brokers: brokers, Graph: v.graph()})
		admin = kadm.NewClient(dial(t, brokers))
		eventually(t, func() bool { return committedAt(t, admin, "g", "in", 0) == 3 })
		release = hold(c, "out")
		t.Cleanup(release)
		return v, inst, brokers, admin, release
	}
	// The gate shuts for the cut a second after it is due: longer than that, and nothing is committed.
	uncommitted := func(t *testing.T, admin *kadm.Client) {
		t.Helper()
		require.Never(t, func() bool { return committedAt(t, admin, "g", "in", 0) > 3 }, 1500*time.Millisecond,
			50*time.Millisecond)
	}
	t.Run("the cut waits", func(t *testing.T) {
		t.Parallel()
		v, inst, brokers, admin, release := ours(t)
		result := v.begin(t, brokers, func() error { return inst.Visit(t.Context(), "tell", nil) })
		uncommitted(t, admin)
		require.Empty(t, result)
		release()
		require.NoError(t, receive(t, result))
		eventually(t, func() bool { return committedAt(t, admin, "g", "in", 0) == 4 })
		require.Len(t, take(t, brokers, "out", 3), 3)
	})
	t.Run("for a visit that was given up as well", func(t *testing.T) {
		t.Parallel()
		v, inst, brokers, admin, release := ours(t)
		ctx, cancel := context.WithCancel(t.Context())
		result := v.begin(t, brokers, func() error { return inst.Visit(ctx, "tell", nil) })
		cancel()
		uncommitted(t, admin)
		release()
		receive(t, result)
		eventually(t, func() bool { return committedAt(t, admin, "g", "in", 0) == 4 })
	})
	t.Run("and a kill ends it", func(t *testing.T) {
		t.Parallel()
		v, inst, brokers, _, release := ours(t)
		result := v.begin(t, brokers, func() error { return inst.Visit(t.Context(), "tell", nil) })
		inst.Kill()
		require.Error(t, receive(t, result))
		release()
		require.ErrorIs(t, inst.wait(t), cut.ErrKilled)
		require.ErrorIs(t, inst.Visit(t.Context(), "tell", nil), instance.ErrNotRunning)
	})
}

// A visit during recovery returns an error; stock Goka dereferences nil.
func TestVisitDuringRecovery(t *testing.T) {
	t.Parallel()
	_, brokers := tabled(t)
	end := transaction(t, brokers, "x", keyed("g-table", "k", "7"))
	c := dial(t, brokers)
	_, err := kadm.NewClient(c).CreateTopic(t.Context(), 1, 1, nil, "fast")
	require.NoError(t, err)
	v := &visited{}
	inst := run(t, instance.Config{Brokers: brokers, Graph: v.graph()})
	eventually(t, func() bool { return inst.Health().Lag != nil }, "it has joined")
	require.ErrorIs(t, inst.Visit(t.Context(), "tell", nil), instance.ErrNotRunning)
	_, err = inst.Get("k")
	require.ErrorIs(t, err, instance.ErrNotRunning)
	end(kgo.TryCommit)
	inst.ready(t)
	require.NoError(t, inst.Visit(t.Context(), "tell", nil))
	require.Equal(t, []string{"7"}, values(take(t, brokers, "out", 1)))
}

// A deadline's effects are part of a cut too: a deadline that was in flight when the process died fires again.
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
