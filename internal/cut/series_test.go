package cut

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/testing/leaktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, leaktest.Libraries()...) }

// testTimeout bounds every wait of these tests. Only failing tests reach it.
const testTimeout = time.Minute

// fakeCloser records its calls; hold, if set, blocks Close until it is closed.
type fakeCloser struct {
	background bool
	hold       chan struct{}
	entered    chan struct{}

	mu      sync.Mutex
	begins  int
	aborts  int
	closes  []map[Partition]int64
	results []error // of the closes to come; none: nil
}

func newFakeCloser(background bool) *fakeCloser {
	return &fakeCloser{background: background, entered: make(chan struct{}, 100)}
}

func (c *fakeCloser) Background() bool { return c.background }

func (c *fakeCloser) Begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begins++
	return nil
}

func (c *fakeCloser) Abort() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.aborts++
	return nil
}

func (c *fakeCloser) Close(_ context.Context, offsets map[Partition]int64, _ Member) error {
	c.entered <- struct{}{}
	if c.hold != nil {
		<-c.hold
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closes = append(c.closes, maps.Clone(offsets))
	if len(c.results) == 0 {
		return nil
	}
	err := c.results[0]
	c.results = c.results[1:]
	return err
}

func (c *fakeCloser) committed() []map[Partition]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]map[Partition]int64(nil), c.closes...)
}

// fakeLayer counts its calls; order records the order of Seal, Flush and the closer's Close.
type fakeLayer struct {
	mu             sync.Mutex
	seals, flushes int
	heavy          bool
	err            error
}

func (l *fakeLayer) Heavy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.heavy
}

func (l *fakeLayer) Seal() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seals++
	return true
}

func (l *fakeLayer) Flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flushes++
	return l.err
}

func (l *fakeLayer) counts() (seals, flushes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seals, l.flushes
}

var in0 = Partition{"in", 0}

type bench struct {
	*Series
	closer *fakeCloser
	layer  *fakeLayer
	revoke context.CancelFunc
	result chan error
}

func start(t *testing.T, c *fakeCloser, p Policy) *bench {
	t.Helper()
	layer := &fakeLayer{}
	if p.MaxRecords == 0 {
		p.MaxRecords = 1000
	}
	if p.MaxBytes == 0 {
		p.MaxBytes = 1 << 20
	}
	if p.Drain == 0 {
		p.Drain = testTimeout
	}
	s := NewSeries(c, p, func() Member { return Member{Group: "g"} }, func() []Layer { return []Layer{layer} }, nil,
		zap.NewNop())
	ctx, cancel := context.WithCancel(t.Context())
	b := &bench{Series: s, closer: c, layer: layer, revoke: cancel, result: make(chan error, 1)}
	go func() { b.result <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-s.Done()
	})
	return b
}

func (b *bench) end(t *testing.T) error {
	t.Helper()
	b.revoke()
	select {
	case err := <-b.result:
		return err
	case <-time.After(testTimeout):
		t.Fatal("the series does not end")
		return nil
	}
}

// A cut is made only when no record is in flight.
func TestCutWaitsForEveryRecordHandedOut(t *testing.T) {
	for _, background := range []bool{true, false} {
		c := newFakeCloser(background)
		b := start(t, c, Policy{Force: time.Hour})
		require.True(t, b.Acquire(in0, 1, 1))
		require.True(t, b.Acquire(in0, 2, 1))
		require.True(t, b.Acquire(Partition{"in", 1}, 8, 1))
		b.Release() // whichever it was: marks carry no order
		b.Release()
		require.Empty(t, c.committed())
		seals, _ := b.layer.counts()
		require.Zero(t, seals, "the local store is never ahead of a cut")
		b.Release()
		<-c.entered
		require.Eventually(t, func() bool { _, f := b.layer.counts(); return f == 1 }, testTimeout, time.Millisecond)
		require.Equal(t, []map[Partition]int64{{in0: 2, {"in", 1}: 8}}, c.committed())
		require.NoError(t, b.end(t))
	}
}

func TestGateOfABackgroundCloserStaysOpenWhileItCloses(t *testing.T) {
	c := newFakeCloser(true)
	c.hold = make(chan struct{})
	b := start(t, c, Policy{Force: time.Hour})
	require.True(t, b.Acquire(in0, 1, 1))
	b.Release()
	<-c.entered
	require.True(t, b.Acquire(in0, 2, 1), "handed out while offsets are on their way")
	b.Release()
	close(c.hold)
	require.NoError(t, b.end(t))
	require.Equal(t, []map[Partition]int64{{in0: 1}, {in0: 2}}, c.committed())
}

func TestGateOfABlockingCloserIsShutUntilItHasClosed(t *testing.T) {
	c := newFakeCloser(false)
	c.hold = make(chan struct{})
	b := start(t, c, Policy{Force: time.Hour})
	require.True(t, b.Acquire(in0, 1, 1))
	b.Release()
	<-c.entered
	passed := make(chan bool, 1)
	go func() { passed <- b.Acquire(in0, 2, 1) }()
	select {
	case <-passed:
		t.Fatal("a record passed a shut gate")
	case <-time.After(20 * time.Millisecond):
	}
	seals, _ := b.layer.counts()
	require.Zero(t, seals, "the outcome is not known yet")
	close(c.hold)
	require.True(t, <-passed)
	seals, _ = b.layer.counts()
	require.Equal(t, 1, seals)
	b.Release()
	require.NoError(t, b.end(t))
}

func TestGateShutsForACutIfRecordsAreAlwaysInFlight(t *testing.T) {
	c := newFakeCloser(true)
	b := start(t, c, Policy{Every: time.Millisecond, Force: 5 * time.Millisecond})
	shut := func() bool { // with one in flight: the next has not passed
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.shut && b.inflight == 1
	}
	require.True(t, b.Acquire(in0, 1, 1))
	// Always one in flight: a new one is taken before the last is done, until the gate shuts.
	got := make(chan bool, 1)
	for next := int64(2); ; next++ {
		go func() { got <- b.Acquire(in0, next, 1) }()
		require.Eventually(t, func() bool { return len(got) == 1 || shut() }, testTimeout, time.Millisecond)
		if shut() {
			break
		}
		require.True(t, <-got)
		b.Release()
	}
	require.Empty(t, c.committed())
	b.Release()
	require.True(t, <-got)
	<-c.entered
	require.Eventually(t, func() bool { return len(c.committed()) > 0 }, testTimeout, time.Millisecond)
	b.Release()
	require.NoError(t, b.end(t))
}

func TestGateBoundsWhatIsInFlight(t *testing.T) {
	for name, p := range map[string]Policy{
		"records": {Every: time.Hour, MaxRecords: 2},
		"bytes":   {Every: time.Hour, MaxBytes: 20},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, newFakeCloser(true), p)
			require.True(t, b.Acquire(in0, 1, 10))
			require.True(t, b.Acquire(in0, 2, 10))
			passed := make(chan bool, 1)
			go func() { passed <- b.Acquire(in0, 3, 10) }()
			b.Release()
			select {
			case <-passed:
				t.Fatal("passed a shut gate")
			case <-time.After(20 * time.Millisecond):
			}
			b.Release()
			require.True(t, <-passed)
			b.Release()
			require.NoError(t, b.end(t))
		})
	}
}

// On revocation the records in flight finish, and the last cut commits their offsets.
func TestRevocationDrainsAndCommits(t *testing.T) {
	for _, background := range []bool{true, false} {
		c := newFakeCloser(background)
		b := start(t, c, Policy{Every: time.Hour, Force: time.Hour})
		require.True(t, b.Acquire(in0, 1, 1))
		b.revoke()
		require.Eventually(t, func() bool {
			passed := b.Acquire(in0, 1, 1)
			if passed {
				b.Release()
			}
			return !passed
		}, testTimeout, time.Millisecond, "the gate is shut for good")
		require.NoError(t, b.Context().Err(), "Goka's context outlives the session for the drain")
		b.Release()
		require.NoError(t, <-b.result)
		require.Error(t, b.Context().Err())
		require.Equal(t, []map[Partition]int64{{in0: 1}}, c.committed())
		seals, flushes := b.layer.counts()
		require.Equal(t, []int{1, 1}, []int{seals, flushes})
		require.NoError(t, b.Abort())
		require.Zero(t, c.aborts)
	}
}

func TestDrainThatTakesTooLongAborts(t *testing.T) {
	c := newFakeCloser(false)
	b := start(t, c, Policy{Every: time.Hour, Force: time.Hour, Drain: 10 * time.Millisecond})
	require.True(t, b.Acquire(in0, 1, 1))
	require.ErrorIs(t, b.end(t), ErrDrain)
	require.Empty(t, c.committed())
	seals, _ := b.layer.counts()
	require.Zero(t, seals)
	require.NoError(t, b.Abort())
	require.Equal(t, 1, c.aborts)
}

func TestFailureCommitsNothing(t *testing.T) {
	c := newFakeCloser(true)
	b := start(t, c, Policy{Every: time.Hour})
	boom := errors.New("boom")
	require.True(t, b.Acquire(in0, 1, 1))
	b.Fail(boom)
	b.Release()
	require.ErrorIs(t, <-b.result, boom)
	require.Error(t, b.Context().Err())
	require.False(t, b.Acquire(in0, 2, 1))
	require.Empty(t, c.committed())
}

func TestOffsetsThatWereNotCommittedGoWithTheNextCut(t *testing.T) {
	c := newFakeCloser(true)
	c.results = []error{ErrNotCommitted}
	b := start(t, c, Policy{Force: time.Hour})
	require.True(t, b.Acquire(in0, 1, 1))
	require.True(t, b.Acquire(Partition{"in", 1}, 5, 1))
	b.Release()
	b.Release()
	<-c.entered
	require.True(t, b.Acquire(in0, 2, 1))
	b.Release()
	require.NoError(t, b.end(t))
	final := map[Partition]int64{}
	for _, offsets := range c.committed()[1:] { // the first was refused
		maps.Copy(final, offsets)
	}
	require.Equal(t, map[Partition]int64{in0: 2, {"in", 1}: 5}, final)
}

func TestErrorOfTheCloserOrTheStoreEndsTheSeries(t *testing.T) {
	boom := errors.New("boom")
	c := newFakeCloser(true)
	c.results = []error{boom}
	b := start(t, c, Policy{Force: time.Hour})
	require.True(t, b.Acquire(in0, 1, 1))
	b.Release()
	require.ErrorIs(t, <-b.result, boom)

	full := errors.New("no space left on device")
	b = start(t, newFakeCloser(true), Policy{Force: time.Hour})
	b.layer.err = full
	require.True(t, b.Acquire(in0, 1, 1))
	b.Release()
	require.ErrorIs(t, <-b.result, full)
}

func TestPositionsOfUntouchedInputsAreCommitted(t *testing.T) {
	c := newFakeCloser(true)
	b := start(t, c, Policy{Every: time.Millisecond})
	b.Note(in0, 7)
	b.Note(in0, 3)
	require.Eventually(t, func() bool { return len(c.committed()) == 1 }, testTimeout, time.Millisecond)
	require.NoError(t, b.end(t))
	require.Equal(t, []map[Partition]int64{{in0: 7}}, c.committed())
}
