package share_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/turntable-streams/turntable/processors/worker/internal/share"
	"github.com/turntable-streams/turntable/processors/worker/internal/source"
)

func TestLongCallFinishesOnceWhileAnotherWorkerJoins(t *testing.T) {
	f := newField(t, 4)
	var b book
	handle := func(_ context.Context, d source.Delivery) source.Verdict {
		if b.add(d) == "slow" {
			<-time.After(15 * lock)
		}
		return source.Settled
	}
	f.put("slow")
	f.start(4, handle)
	f.eventually(func() bool { calls, _ := b.of("slow"); return calls == 1 })
	f.start(4, handle)
	f.put(names("fast", 20)...)
	f.eventually(func() bool { return b.once(t, "fast", 20) })
	require.Never(t, func() bool { calls, _ := b.of("slow"); return calls > 1 }, 17*lock, 100*time.Millisecond)
	require.True(t, b.once(t, "fast", 20))
}

func TestReleasedRecordIsDeliveredAgainWithItsCount(t *testing.T) {
	f := newField(t, 1)
	var b book
	f.start(2, func(_ context.Context, d source.Delivery) source.Verdict {
		b.add(d)
		if d.Count < 3 {
			return source.Released
		}
		return source.Settled
	})
	f.put("a")
	f.eventually(func() bool { calls, _ := b.of("a"); return calls == 3 })
	_, last := b.of("a")
	require.Equal(t, []any{3, 2, 2, true}, []any{last.Count, last.Remaining, last.Attempts, last.Repeated})
	require.Never(t, func() bool { calls, _ := b.of("a"); return calls > 3 }, 2*lock, 50*time.Millisecond)
}

func TestStopWaitsForRunningCallsAndRepeatsNothingSettled(t *testing.T) {
	f := newField(t, 1)
	var b book
	release, running := make(chan struct{}), make(chan struct{})
	handle := func(_ context.Context, d source.Delivery) source.Verdict {
		switch b.add(d) {
		case "slow":
			if d.Count == 1 {
				close(running)
				<-release
				return source.Released
			}
		case "waits":
			<-release
		}
		return source.Settled
	}
	s, stop := f.start(3, handle)
	f.put("slow", "waits")
	f.put(names("fast", 20)...)
	<-running
	f.eventually(func() bool { return b.once(t, "fast", 20) })
	require.True(t, s.Status().Joined)
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	f.eventually(func() bool { return !s.Status().Joined })
	f.put("late")
	require.Never(t, func() bool { calls, _ := b.of("late"); return calls > 0 }, 2*lock, 50*time.Millisecond,
		"a worker that stops takes no records")
	close(release)
	<-stopped

	f.start(3, handle)
	f.eventually(func() bool {
		slow, _ := b.of("slow")
		late, _ := b.of("late")
		return slow == 2 && late == 1
	})
	require.True(t, b.once(t, "fast", 20))
	require.True(t, b.once(t, "waits", 1))
}

func TestFreeSlotsAreUsedWhileOthersHang(t *testing.T) {
	f := newField(t, 2)
	var b book
	release := make(chan struct{})
	defer close(release)
	f.start(3, func(_ context.Context, d source.Delivery) source.Verdict {
		if name := b.add(d); name == "hang0" || name == "hang1" {
			<-release
		}
		return source.Settled
	})
	f.put(names("hang", 2)...)
	f.put(names("fast", 50)...)
	f.eventually(func() bool { return b.once(t, "fast", 50) })
}

func TestConcurrencyIsBounded(t *testing.T) {
	f := newField(t, 3)
	running := make(chan struct{}, 100)
	release := make(chan struct{})
	f.start(3, func(context.Context, source.Delivery) source.Verdict {
		running <- struct{}{}
		<-release
		return source.Settled
	})
	f.put(names("a", 10)...)
	f.eventually(func() bool { return len(running) == 3 })
	require.Never(t, func() bool { return len(running) > 3 }, lock, 20*time.Millisecond)
	close(release)
	f.eventually(func() bool { return len(running) == 10 })
}

func TestLostLockEndsTheContext(t *testing.T) {
	f := newField(t, 1)
	lost, again := make(chan error, 1), make(chan struct{})
	f.start(1, func(ctx context.Context, d source.Delivery) source.Verdict {
		if d.Count > 1 {
			close(again)
			return source.Settled
		}
		// The broker gives up the lock, as if this process had not renewed it.
		f.set("group.share.record.lock.duration.ms", "1")
		<-ctx.Done()
		f.set("group.share.record.lock.duration.ms", "1000")
		lost <- context.Cause(ctx)
		return source.Settled // ignored: the record is not held any more
	})
	f.put("a")
	require.True(t, errors.Is(<-lost, source.ErrLost))
	<-again
}

// A process that was suspended reads the response of a fetch whose locks have expired.
func TestRecordWhoseLockHasExpiredIsNotStarted(t *testing.T) {
	calls := 0
	count := func(context.Context, source.Delivery) source.Verdict {
		calls++
		return source.Settled
	}
	kept, used := share.Acquire(count, time.Now().Add(-lock), lock)
	require.Equal(t, []any{false, false, 0}, []any{kept, used, calls})
	kept, used = share.Acquire(count, time.Now(), lock)
	require.Equal(t, []any{true, true, 1}, []any{kept, used, calls})
}

func TestRecordWhoseLockHasExpiredIsNotConfirmed(t *testing.T) {
	share.Suspend(func(ctx context.Context, d source.Delivery) source.Verdict {
		require.NoError(t, ctx.Err())
		d.Confirm(ctx)
		require.ErrorIs(t, context.Cause(ctx), source.ErrLost)
		return source.Released
	})
}

func TestRunningCallSurvivesItsConnection(t *testing.T) {
	f := newField(t, 1)
	var b book
	release, ended := make(chan struct{}), make(chan error, 1)
	f.start(2, func(ctx context.Context, d source.Delivery) source.Verdict {
		if b.add(d) == "slow" {
			<-release
			ended <- ctx.Err()
		}
		return source.Settled
	})
	f.put("slow")
	f.eventually(func() bool { calls, _ := b.of("slow"); return calls == 1 })
	var cuts atomic.Int32
	f.broker.Cluster().ControlKey(int16(kmsg.ShareFetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		cuts.Add(1)
		return nil, errors.New("cut"), true // closes the connection, with which the broker releases the record
	})
	f.eventually(func() bool { return cuts.Load() == 1 })
	f.put(names("fast", 5)...)
	f.eventually(func() bool { return b.once(t, "fast", 5) })
	require.Never(t, func() bool { calls, _ := b.of("slow"); return calls > 1 }, 2*lock, 20*time.Millisecond)
	close(release)
	require.NoError(t, <-ended, "the record was acquired again for the running call")
	require.Never(t, func() bool { calls, _ := b.of("slow"); return calls > 1 }, 2*lock, 20*time.Millisecond)
}
