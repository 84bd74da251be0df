package share_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/worker/internal/source"
)

func never() bool  { return false }
func always() bool { return true }

func TestRecordsThatWaitLeaveTheirSlotsToOthersAndKeepTheirLocks(t *testing.T) {
	f := newField(t, 1)
	var b book
	release := make(chan struct{})
	f.startWaiting(2, 6, never, func(_ context.Context, d source.Delivery) source.Verdict {
		if strings.HasPrefix(b.add(d), "waits") {
			d.Wait(true)
			<-release
			d.Wait(false)
		}
		return source.Settled
	})
	f.put(names("waits", 6)...)
	f.put(names("fast", 10)...)
	f.eventually(func() bool { return b.once(t, "fast", 10) })
	require.Never(t, func() bool { return !b.once(t, "waits", 6) }, 3*lock, 50*time.Millisecond)
	close(release)
	f.put("last")
	f.eventually(func() bool { return b.once(t, "last", 1) })
	require.True(t, b.once(t, "waits", 6))
}

func TestNoMoreRecordsAreAcquiredThanThereArePlaces(t *testing.T) {
	f := newField(t, 1)
	var b book
	release := make(chan struct{})
	f.startWaiting(2, 3, always, func(_ context.Context, d source.Delivery) source.Verdict {
		b.add(d)
		d.Wait(true)
		<-release
		return source.Settled
	})
	f.put(names("a", 10)...)
	f.eventually(func() bool { return b.once(t, "a", 5) })
	require.Never(t, func() bool { return b.once(t, "a", 6) }, time.Second, 20*time.Millisecond)
	close(release)
	f.eventually(func() bool { return b.once(t, "a", 10) })
}

func TestCrowdedWorkerAcquiresRecordsAlthoughNoSlotIsFree(t *testing.T) {
	for name, crowded := range map[string]bool{"crowded": true, "not crowded": false} {
		t.Run(name, func(t *testing.T) {
			f := newField(t, 1)
			var b book
			release := make(chan struct{})
			var running atomic.Int64
			f.startWaiting(2, 10, func() bool { return crowded }, func(_ context.Context, d source.Delivery) source.Verdict {
				b.add(d)
				running.Add(1)
				<-release
				return source.Settled
			})
			f.put(names("a", 8)...)
			if crowded {
				f.eventually(func() bool { return running.Load() == 8 })
			} else {
				f.eventually(func() bool { return running.Load() == 2 })
				require.Never(t, func() bool { return running.Load() > 2 }, time.Second, 20*time.Millisecond)
			}
			close(release)
			f.eventually(func() bool { return b.once(t, "a", 8) })
		})
	}
}

func TestLagIsTheNumberOfRecordsThatAreNotSettled(t *testing.T) {
	f := newField(t, 2)
	held := make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	// A slot for each record: the broker knows no lag of a partition from which it has delivered nothing.
	s, _ := f.start(10, func(context.Context, source.Delivery) source.Verdict {
		<-held
		return source.Settled
	})
	t.Cleanup(release)
	f.put(names("a", 10)...)
	lag := func() (sum int64) {
		for _, n := range s.Status().Lag["in"] {
			sum += n
		}
		return sum
	}
	f.eventually(func() bool { return lag() == 10 })
	release()
	f.eventually(func() bool { return s.Status().Lag != nil && lag() == 0 })
}
