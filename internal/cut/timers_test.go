package cut

import (
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/internal/store"
)

// timed is a partition with deadlines, whose inputs have been read through a time.
type timed struct {
	index    *store.DueIndex
	mu       sync.Mutex
	progress runtimeapi.Progress
	out      chan *sarama.ConsumerMessage
}

// newTimed hands out deadlines until the test ends, which must run in a bubble of synctest.
func newTimed(t *testing.T, deadlines map[string]time.Duration) *timed {
	t.Helper()
	x := &timed{index: store.NewDueIndex(), out: make(chan *sarama.ConsumerMessage)}
	begin := time.Now()
	for key, d := range deadlines {
		x.index.Set(key, begin.Add(d).UnixMilli())
	}
	c := &timerClaim{
		timers: &Timers{
			Topic: "timers", Tick: time.Second, Clock: clock.System(),
			Next: func(int32) (int64, bool) { return x.index.Next() },
			Due:  func(_ int32, now int64, limit int) []store.DueEntry { return x.index.PopDue(now, limit) },
		},
		out: x.out, log: zap.NewNop(), progress: func(int32, time.Time) runtimeapi.Progress {
			x.mu.Lock()
			defer x.mu.Unlock()
			return x.progress
		},
	}
	s := NewSeries(&fakeCloser{}, Policy{MaxRecords: 1000, MaxBytes: 1 << 20}, nil, nil, nil, zap.NewNop())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.pump(s)
	}()
	t.Cleanup(func() {
		s.cancel()
		<-ended
	})
	return x
}

// read says how far the inputs have been read, and since when they are.
func (x *timed) read(through, since time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.progress = runtimeapi.Progress{Through: through, Since: since}
}

// fired returns what is handed out in a time, by key.
func (x *timed) fired(in time.Duration) map[string]time.Time {
	got := map[string]time.Time{}
	for end := time.After(in); ; {
		select {
		case m := <-x.out:
			got[string(m.Key)] = m.Timestamp
		case <-end:
			return got
		}
	}
}

func TestDeadlineWaitsUntilTheRecordsOfBeforeAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTimed(t, map[string]time.Duration{"a": 2 * time.Second, "b": 5 * time.Second})
		begin := time.Now()
		since := begin.Add(-time.Hour)
		x.read(time.Time{}, since)
		require.Empty(t, x.fired(6500*time.Millisecond), "nothing is known of the inputs")
		x.read(begin.Add(2*time.Second-time.Millisecond), since)
		require.Empty(t, x.fired(time.Second))
		x.read(begin.Add(3*time.Second), since)
		require.Equal(t, map[string]time.Time{"a": begin.Add(3 * time.Second)}, x.fired(2*askAgain), "it does not wait for a tick")
		x.read(begin.Add(5*time.Second), since)
		require.Equal(t, map[string]time.Time{"b": begin.Add(5 * time.Second)}, x.fired(2*askAgain))
	})
}

func TestDeadlineWaitsForUnreadRecordsForALimitedTime(t *testing.T) {
	for name, c := range map[string]struct{ since, fires time.Duration }{
		"read since long":             {-time.Hour, 2*time.Second + UnreadLimit},
		"read since after it was due": {10 * time.Second, 10*time.Second + UnreadLimit},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newTimed(t, map[string]time.Duration{"a": 2 * time.Second})
				begin := time.Now()
				x.read(time.Time{}, begin.Add(c.since))
				require.Empty(t, x.fired(c.fires-time.Millisecond))
				got := x.fired(2 * askAgain)["a"]
				require.False(t, got.Before(begin.Add(2*time.Second)), got)
				require.True(t, got.Before(time.Now().Add(-UnreadLimit+time.Millisecond)), "what is due later waits as long: %v", got)
			})
		})
	}
}

func TestDeadlinesThatAreDueTogetherAllFire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 3*sweepBatch + 1
		deadlines := map[string]time.Duration{"later": time.Hour}
		for i := range n {
			deadlines[strconv.Itoa(i)] = time.Duration(i) * time.Millisecond
		}
		x := newTimed(t, deadlines)
		half := time.Now().Add(n / 2 * time.Millisecond)
		x.read(half, time.Now())
		require.Len(t, x.fired(2*time.Second), n/2+1)
		x.read(time.Now(), time.Now())
		require.Len(t, x.fired(2*time.Second), n/2)
	})
}
