package kill

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/processors/embedded"
)

// deaths are victims that count.
type deaths struct {
	launched, killed [2]int
	fail             error
}

type victim struct {
	*deaths
	n int
}

func (v victim) Kill() error {
	v.killed[v.n]++
	return v.fail
}

func (d *deaths) launch(n int) Victim {
	d.launched[n]++
	return victim{d, n}
}

// count does something again and again, until it has done enough.
func count(done *atomic.Int64, enough int64) func(context.Context) error {
	return func(ctx context.Context) error {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for done.Add(1) < enough {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}
}

func TestLoopKillsDuringTheWorkAndJudgesAfterIt(t *testing.T) {
	var d deaths
	var done atomic.Int64
	before, judged := 0, false
	l := &Loop{
		Seed: 1, Kills: 10, Victims: 2, Launch: d.launch, Work: 200, Clients: count(&done, 200),
		Progress: func() int { return int(done.Load()) },
		Before:   func(context.Context, *rand.Rand) error { before++; return nil },
		Judge:    func() { judged = done.Load() == 200 },
	}
	l.Start()
	require.Equal(t, [2]int{1, 1}, d.launched)
	l.Run(t.Context(), t)
	require.True(t, judged)
	require.Equal(t, 10, before)
	require.Equal(t, 10, d.killed[0]+d.killed[1])
	require.NotZero(t, d.killed[0])
	require.NotZero(t, d.killed[1])
	require.Equal(t, 12, d.launched[0]+d.launched[1])
}

func TestKillsComeWhenTheTestSays(t *testing.T) {
	var d deaths
	var done atomic.Int64
	var at []int64
	l := &Loop{
		Kills: 3, Victims: 2, Launch: d.launch, Work: 200, Clients: count(&done, 200), Progress: func() int { return int(done.Load()) },
		When:   func(_ *rand.Rand, kill, _ int) (int, time.Duration) { return 50 * (kill + 1), 0 },
		Choose: func(*rand.Rand) int { return 1 },
		Before: func(context.Context, *rand.Rand) error { at = append(at, done.Load()); return nil },
	}
	require.NoError(t, l.run(t.Context()))
	require.Equal(t, [2]int{0, 3}, d.killed)
	for n, done := range at {
		require.GreaterOrEqual(t, done, int64(50*(n+1)))
	}

	done.Store(0) // nothing is done: kills come after the time
	l.Clients = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	l.When = func(*rand.Rand, int, int) (int, time.Duration) { return 1, time.Millisecond }
	ctx, cancel := context.WithCancel(t.Context())
	l.Before = func(context.Context, *rand.Rand) error {
		if d.killed[1] == 5 {
			cancel()
		}
		return nil
	}
	require.ErrorIs(t, l.run(ctx), context.Canceled)
	require.Equal(t, 6, d.killed[1])
}

func TestLoopBesideOtherWorkEndsAfterTheLastKill(t *testing.T) {
	var d deaths
	l := &Loop{
		Kills: 3, Victims: 2, Launch: d.launch, Progress: func() int { return 0 },
		When: func(*rand.Rand, int, int) (int, time.Duration) { return 0, 0 },
	}
	require.NoError(t, l.run(t.Context()))
	require.Equal(t, 3, d.killed[0]+d.killed[1])
}

func TestErrorsOfClientsEndTheLoop(t *testing.T) {
	var d deaths
	l := &Loop{
		Kills: 3, Victims: 1, Launch: d.launch, Work: 10, Progress: func() int { return 0 },
		Clients: func(context.Context) error { return errClient },
	}
	err := l.run(t.Context())
	require.ErrorIs(t, err, errClient)
	require.ErrorContains(t, err, "kill 1 of 3")
	require.Zero(t, d.killed[0])

	failing := errors.New("no such process")
	d.fail = failing
	l.Clients = func(ctx context.Context) error { <-ctx.Done(); return errClient }
	l.When = func(*rand.Rand, int, int) (int, time.Duration) { return 0, 0 }
	err = l.run(t.Context())
	require.ErrorIs(t, err, failing)
	require.ErrorIs(t, err, errClient)
}

func TestStuckNamesLagsAndOpenTransactions(t *testing.T) {
	broker, err := embedded.Start(embedded.Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, broker.Close()) }()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...), kgo.TransactionalID("ship-1"))
	require.NoError(t, err)
	defer client.Close()
	admin := kadm.NewClient(client)
	_, err = admin.CreateTopics(t.Context(), 1, 1, nil, "ship-in", "other-in")
	require.NoError(t, err)
	for _, group := range []string{"ship", "other"} {
		var at kadm.Offsets
		at.AddOffset(group+"-in", 0, 0, -1)
		require.NoError(t, admin.CommitAllOffsets(t.Context(), group, at))
	}
	require.NoError(t, client.BeginTransaction())
	for _, topic := range []string{"ship-in", "other-in"} {
		require.NoError(t, client.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte("x")}).FirstErr())
	}
	said := Stuck(t.Context(), broker.Addrs(), "ship")
	require.Contains(t, said, "group ship: Empty, 0 members")
	require.Contains(t, said, "ship-in/0: committed 0, end 1")
	require.Contains(t, said, "hidden by a transaction: ship-in/0: stable to 0, end 1")
	require.Contains(t, said, "transaction ship-1: Ongoing")
	require.NotContains(t, said, "other")
	require.Contains(t, Stuck(t.Context(), broker.Addrs()), "other-in/0: committed 0, end 1")
}
