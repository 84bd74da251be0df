package processors_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/processors"
)

func TestCatchUpReturnsAfterTheHandlerOfTheLastRecord(t *testing.T) {
	f := newField(t, 1)
	var handled atomic.Int64
	follower, err := processors.NewFollower(f.addrs, []string{"answers"}, func(processors.Inbound) { handled.Add(1) })
	require.NoError(t, err)
	require.ErrorIs(t, follower.CatchUp(t.Context(), "answers", "s"), processors.ErrNotFollowing)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- follower.Run(ctx) }()
	defer func() {
		stop()
		require.NoError(t, <-ended)
	}()
	<-follower.Ready()
	require.NoError(t, follower.CatchUp(t.Context(), "answers", "s"), "nothing was written")
	require.ErrorIs(t, follower.CatchUp(t.Context(), "none", "s"), processors.ErrNoTopic)

	p := newPublisher(t, f.addrs)
	for n := range int64(5) {
		publish(t, p, "s", "a", "b")
		require.NoError(t, follower.CatchUp(t.Context(), "answers", "s"))
		require.Equal(t, 2*(n+1), handled.Load())
	}

	// The offsets after the last record of a transaction are those of its marker, which the handler does not receive.
	to, err := kgo.NewClient(kgo.SeedBrokers(f.addrs...), kgo.TransactionalID("t"))
	require.NoError(t, err)
	defer to.Close()
	for n, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
		require.NoError(t, to.BeginTransaction())
		record := &kgo.Record{Topic: "answers", Key: []byte("s"), Value: []byte("c")}
		require.NoError(t, to.ProduceSync(t.Context(), record).FirstErr())
		require.NoError(t, follower.CatchUp(t.Context(), "answers", "s"), "it does not wait for an open transaction")
		require.Equal(t, int64(10+n), handled.Load())
		require.NoError(t, to.EndTransaction(t.Context(), end))
		require.NoError(t, follower.CatchUp(t.Context(), "answers", "s"))
		require.Equal(t, int64(11), handled.Load())
	}
}

func TestCatchUpWaitsForASlowHandler(t *testing.T) {
	f := newField(t, 1)
	entered, leave := make(chan struct{}), make(chan struct{})
	follower, err := processors.NewFollower(f.addrs, []string{"answers"}, func(processors.Inbound) {
		close(entered)
		<-leave
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- follower.Run(ctx) }()
	defer func() {
		stop()
		require.NoError(t, <-ended)
	}()
	<-follower.Ready()
	publish(t, newPublisher(t, f.addrs), "s", "a")
	<-entered
	var left atomic.Bool
	var callers sync.WaitGroup
	for range 100 {
		callers.Go(func() {
			if err := follower.CatchUp(t.Context(), "answers", "s"); err != nil || !left.Load() {
				t.Error("it returned before the handler:", err)
			}
		})
	}
	impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.ErrorIs(t, follower.CatchUp(impatient, "answers", "s"), context.DeadlineExceeded)
	left.Store(true)
	close(leave)
	callers.Wait()
}
