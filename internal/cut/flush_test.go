package cut

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func (b *bench) cut(t *testing.T, next int64) {
	t.Helper()
	before := b.Cuts()
	require.True(t, b.Acquire(in0, next, 1))
	b.Release()
	<-b.closer.entered
	require.Eventually(t, func() bool { return b.Cuts() > before }, testTimeout, time.Millisecond)
}

func (b *bench) flushes() int {
	_, n := b.layer.counts()
	return n
}

func TestCutsThatComeSoonAfterAFlushAreFlushedTogether(t *testing.T) {
	for _, background := range []bool{true, false} {
		b := start(t, newFakeCloser(background), Policy{Force: time.Hour, Flush: 300 * time.Millisecond})
		b.cut(t, 1)
		require.Eventually(t, func() bool { return b.flushes() == 1 }, testTimeout, time.Millisecond)
		for next := range int64(5) {
			b.cut(t, 2+next)
		}
		seals, _ := b.layer.counts()
		require.Equal(t, 6, seals)
		require.Eventually(t, func() bool { return b.flushes() > 1 }, testTimeout, time.Millisecond,
			"also where nothing comes any more")
		require.Less(t, b.flushes(), 6)
		b.cut(t, 7)
		require.NoError(t, b.end(t))
		require.Greater(t, b.flushes(), 2, "who drains leaves nothing")
	}
}

func TestHeavyStoreIsFlushedAtOnce(t *testing.T) {
	b := start(t, newFakeCloser(true), Policy{Force: time.Hour, Flush: time.Hour})
	b.cut(t, 1)
	require.Eventually(t, func() bool { return b.flushes() == 1 }, testTimeout, time.Millisecond)
	b.cut(t, 2)
	require.Equal(t, 1, b.flushes())
	b.layer.mu.Lock()
	b.layer.heavy = true
	b.layer.mu.Unlock()
	b.cut(t, 3)
	require.Eventually(t, func() bool { return b.flushes() == 2 }, testTimeout, time.Millisecond)
	require.NoError(t, b.end(t))
}

func TestALateFlushThatFailsEndsTheSeries(t *testing.T) {
	b := start(t, newFakeCloser(true), Policy{Force: time.Hour, Flush: 50 * time.Millisecond})
	b.cut(t, 1)
	require.Eventually(t, func() bool { return b.flushes() == 1 }, testTimeout, time.Millisecond)
	b.layer.mu.Lock()
	b.layer.err = errFake
	b.layer.mu.Unlock()
	b.cut(t, 2)
	require.ErrorIs(t, <-b.result, errFake)
}

// hangingLayer is a local store whose flushes wait until release is closed.
type hangingLayer struct {
	fakeLayer
	entered chan struct{}
	release chan struct{}
}

func (l *hangingLayer) Flush() error {
	l.entered <- struct{}{}
	<-l.release
	return l.fakeLayer.Flush()
}

// While a flush hangs, no cut can be made and everything handed out stays in memory.
func TestGateShutsBehindAFlushThatHangs(t *testing.T) {
	const most = 5
	for name, c := range map[string]struct {
		background bool
		late       bool // the flush is that of a cut which was closed soon after the one before
		size       int
	}{
		"records, at least once":       {background: true, size: 1},
		"records, exactly once":        {size: 1},
		"bytes, at least once":         {background: true, size: 100},
		"bytes, exactly once":          {size: 100},
		"late flush, at least once":    {background: true, late: true, size: 1},
		"late flush, exactly once":     {late: true, size: 1},
		"bytes, late and at once":      {background: true, late: true, size: 100},
		"bytes, late and exactly once": {late: true, size: 100},
	} {
		t.Run(name, func(t *testing.T) {
			policy := Policy{Force: time.Hour, Drain: testTimeout, MaxRecords: most, MaxBytes: 1000}
			if c.size > 1 {
				policy.MaxRecords, policy.MaxBytes = 1000, most*c.size
			}
			if c.late {
				policy.Flush = 20 * time.Millisecond
			}
			layer := &hangingLayer{entered: make(chan struct{}, 100), release: make(chan struct{})}
			closer := newFakeCloser(c.background)
			s := seriesOver(nil, closer, layer, policy)
			s.flushed = time.Now() // so that the first flush is late where flushes have a least distance
			ctx, end := context.WithCancel(t.Context())
			ran := make(chan error, 1)
			go func() { ran <- s.Run(ctx) }()
			require.True(t, s.Acquire(in0, 1, 1))
			s.Release()
			<-layer.entered

			var passed atomic.Int64
			done := make(chan bool, 1)
			go func() {
				for n := range int64(4 * most) {
					if !s.Acquire(in0, 2+n, c.size) {
						done <- false
						return
					}
					passed.Add(1)
					s.Release()
				}
				done <- true
			}()
			require.Eventually(t, func() bool { return passed.Load() == most }, testTimeout, time.Millisecond)
			require.Never(t, func() bool { return passed.Load() > most }, 30*time.Millisecond, time.Millisecond)
			close(layer.release)
			require.True(t, <-done, "the gate opens when the flush has ended")
			end()
			require.NoError(t, <-ran)
			all := closer.committed()
			require.EqualValues(t, 1+4*most, all[len(all)-1][in0])
		})
	}
}
