package cut

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeLog is the log of one input.
type fakeLog struct {
	high, data int64 // data is the offset after the last record that a consumer returns
	open       bool  // a transaction is open
	err        error
	hang       chan struct{}
	asked      int
	looked     int // for the last record
}

func (l *fakeLog) log() Log {
	return Log{
		High: func(Partition) (int64, error) {
			l.asked++
			if l.hang != nil {
				<-l.hang
			}
			return l.high, l.err
		},
		Data: func(_ context.Context, _ Partition, from, to int64) (int64, bool, error) {
			l.looked++
			return max(from, min(l.data, to)), !l.open, l.err
		},
	}
}

// readings calls advance at a time of the fake clock, which is also the deadline, with the position that has been read.
type readings struct {
	t *testing.T
	r reading
	l *fakeLog

	clock time.Time // the latest deadline
}

func (r *readings) at(now time.Time, position int64) (through time.Time) {
	r.t.Helper()
	if now.After(r.clock) {
		r.clock = now
	}
	return r.r.advance(r.t.Context(), now, ask{
		log: r.l.log(), now: func() time.Time { return r.clock }, positions: map[string]int64{"in": position},
	})
}

func TestInputIsReadWhenNoRecordIsLeftBeforeItsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		log      fakeLog
		position int64
		read     bool
	}{
		"empty":                              {fakeLog{}, 0, true},
		"at the end":                         {fakeLog{high: 7, data: 7}, 7, true},
		"one record is left":                 {fakeLog{high: 7, data: 7}, 6, false},
		"a marker is left":                   {fakeLog{high: 7, data: 6}, 6, true},
		"aborted records are left":           {fakeLog{high: 70, data: 6}, 6, true},
		"a record before a marker":           {fakeLog{high: 8, data: 7}, 6, false},
		"a transaction is open":              {fakeLog{high: 7, data: 6, open: true}, 6, false},
		"a broker fails":                     {fakeLog{high: 7, data: 7, err: errors.New("down")}, 7, false},
		"the position is after the answer":   {fakeLog{high: 7, data: 7}, 9, true},
		"everything before it was compacted": {fakeLog{high: 1000, data: 0}, 3, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := &readings{t: t, l: &c.log}
			now := time.UnixMilli(1_000_000)
			through := r.at(now, c.position)
			require.Equal(t, c.read, through.Equal(now), through)
			require.Equal(t, !c.read, through.IsZero())
		})
	}
}

// The brokers are asked once: records that are written later do not count.
func TestRecordsAfterTheDeadlineAreNotWaitedFor(t *testing.T) {
	r := &readings{t: t, l: &fakeLog{high: 8, data: 7}}
	first := time.UnixMilli(1_000_000)
	require.Zero(t, r.at(first, 3))
	r.l.high, r.l.data = 100, 99
	later := first.Add(time.Second)
	require.Zero(t, r.at(later, 6))
	require.Equal(t, 1, r.l.asked)
	require.Equal(t, first, r.at(later, 7), "the records of the first deadline are read, those of the second are not")
	require.Equal(t, 2, r.l.asked)
	require.Equal(t, first, r.at(later.Add(-time.Millisecond), 98))
	require.Equal(t, later, r.at(later, 99))
	require.Equal(t, later, r.at(first, 99), "deadlines that were due before need no request")
	require.Equal(t, 2, r.l.asked)
}

// A group writes to its own inputs in transactions: one is nearly always open, and it is not always the same.
func TestEndBehindAnOpenTransactionIsKnownWhenThatOneHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &readings{t: t, l: &fakeLog{high: 9, data: 7, open: true}}
		now := time.Now()
		require.Zero(t, r.at(now, 7))
		r.l.open = false
		require.Zero(t, r.at(now, 7), "the brokers are not asked again at once")
		<-time.After(askAgain)
		require.Equal(t, now, r.at(now, 7))
	})
}

func TestBrokerThatDoesNotAnswerHoldsACallbackOnceForAShortTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &readings{t: t, l: &fakeLog{high: 7, data: 7, hang: make(chan struct{})}}
		begin := time.Now()
		for range 100 {
			require.Zero(t, r.at(begin, 7))
		}
		require.Equal(t, askLimit, time.Since(begin))
		close(r.l.hang)
		synctest.Wait()
		require.Equal(t, begin, r.at(begin, 7), "the late answer counts")
		require.Equal(t, 1, r.l.asked)
	})
}

func TestPositionIsThatOfTheFirstRecordWhoseCallbackHasNotBegun(t *testing.T) {
	s := start(t, newFakeCloser(true), Policy{Every: time.Hour}).Series
	p, c := Partition{"in", 0}, &claim{}
	c.next.Store(5)
	require.Equal(t, int64(5), s.position(p, c), "where the claim began")
	for _, offset := range []int64{7, 8} {
		require.True(t, s.Acquire(p, offset+1, 1))
		c.next.Store(offset + 1)
	}
	require.Equal(t, int64(7), s.position(p, c), "handed out is not read")
	require.True(t, s.Begun(p, 7))
	require.Equal(t, int64(8), s.position(p, c))
	require.True(t, s.Begun(p, 8))
	require.Equal(t, int64(9), s.position(p, c))
	s.Release()
	s.Release()
}

// An input may end in the marker of a transaction for days.
func TestEndIsNotLookedUpAgainWhileNothingIsWritten(t *testing.T) {
	r := &readings{t: t, l: &fakeLog{high: 7, data: 6}}
	now := time.UnixMilli(1_000_000)
	require.Equal(t, now, r.at(now, 6))
	r.l.err, r.l.data = nil, -1 // Data would say that a record is left
	r.l.looked = 0
	for range 3 {
		now = now.Add(time.Second)
		require.Equal(t, now, r.at(now, 6))
	}
	require.Zero(t, r.l.looked)
	r.l.high, r.l.data = 9, 8
	now = now.Add(time.Second)
	require.True(t, r.at(now, 6).Before(now))
	require.Equal(t, now, r.at(now, 8))
}

func TestClockThatIsSetBackIsAskedForAgain(t *testing.T) {
	r := &readings{t: t, l: &fakeLog{high: 7, data: 7}}
	now := time.UnixMilli(10_000_000)
	r.r.since = now
	require.Equal(t, now, r.at(now, 7))
	r.l.high, r.l.data = 9, 9
	back := now.Add(-time.Hour)
	r.clock = back
	require.Zero(t, r.at(back, 8), "a record of before the deadline is not read")
	require.Equal(t, back, r.r.since)
	require.Equal(t, back, r.at(back, 9))
}
