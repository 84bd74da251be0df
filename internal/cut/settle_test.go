package cut

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// heldTable settles cuts as the test says, in order.
type heldTable struct{ cuts []*batch }

func (h *heldTable) Seal() Settling {
	b := h.cuts[0]
	h.cuts = h.cuts[1:]
	return b
}

func settledBatch() *batch {
	b := newBatch(0)
	b.end(nil)
	return b
}

func seriesOver(table Table, c Closer, layer Layer, p Policy) *Series {
	s := NewSeries(c, p, func() Member { return Member{} }, func() []Layer { return []Layer{layer} }, nil, zap.NewNop())
	s.table = table
	return s
}

// The rows of a cut fail, and the partitions are revoked before the series knows. Later records are not committed: a later
// record of the same partition without a row would move the offset past the record whose row is lost.
func TestDrainCommitsNothingBehindACutWhoseRowsWereRefused(t *testing.T) {
	gone, end := context.WithCancel(t.Context())
	end()
	for range 20 { // the cut and the revocation are met in any order
		refused := newBatch(0)
		refused.end(errFake)
		c, layer := newFakeCloser(true), &fakeLayer{}
		s := seriesOver(&heldTable{[]*batch{refused, settledBatch()}}, c, layer,
			Policy{Force: time.Hour, Drain: testTimeout, MaxRecords: 10, MaxBytes: 10})
		require.True(t, s.Acquire(in0, 1, 1))
		s.Release() // the cut is made
		require.True(t, s.Acquire(in0, 2, 1))
		s.Release()
		require.ErrorIs(t, s.Run(gone), errFake)
		require.Empty(t, c.committed())
		require.Zero(t, layer.flushes)
	}
}

// A unit of work fails the series and is then released: nothing of it is committed, although nothing is in flight then.
func TestFailureInTheLastMomentOfADrainCommitsNothing(t *testing.T) {
	for range 50 {
		gone, end := context.WithCancel(t.Context())
		c := newFakeCloser(true)
		s := seriesOver(nil, c, &fakeLayer{}, Policy{Force: time.Hour, Drain: testTimeout, MaxRecords: 10, MaxBytes: 10})
		require.True(t, s.Acquire(in0, 1, 1))
		ran := make(chan error, 1)
		go func() { ran <- s.Run(gone) }()
		end()
		require.Eventually(t, func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.ending
		}, testTimeout, time.Millisecond)
		s.mu.Lock() // both are there when the drain looks
		s.failLocked(errFake)
		s.inflight--
		s.idleLocked()
		s.mu.Unlock()
		require.ErrorIs(t, <-ran, errFake)
		require.Empty(t, c.committed())
	}
}

// The number of rows that a broker does not acknowledge is bounded, although only the cut waits for them.
func TestGateShutsBehindRowsThatDoNotSettle(t *testing.T) {
	hung := newBatch(1)
	c := newFakeCloser(true)
	s := seriesOver(&heldTable{[]*batch{hung, settledBatch(), settledBatch()}}, c, &fakeLayer{},
		Policy{Force: time.Hour, Drain: testTimeout, MaxRecords: 3, MaxBytes: 1000})
	ctx, end := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	require.True(t, s.Acquire(in0, 1, 1))
	s.Release() // the cut that hangs
	for i := range int64(3) {
		require.True(t, s.Acquire(in0, 2+i, 1))
		s.Release()
	}
	passed := make(chan bool, 1)
	go func() { passed <- s.Acquire(in0, 5, 1) }()
	select {
	case <-passed:
		t.Fatal("a fourth record passes while the rows of the first hang")
	case <-time.After(30 * time.Millisecond):
	}
	hung.end(nil)
	select {
	case ok := <-passed:
		require.True(t, ok)
	case <-time.After(testTimeout):
		t.Fatal("the gate stays shut")
	}
	s.Release()
	end()
	require.NoError(t, <-ran)
	require.Equal(t, int64(5), c.committed()[len(c.committed())-1][in0])
}
