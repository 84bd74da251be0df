package cut

import (
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
	require.Eventually(t, func() bool { return b.Cuts() > before }, patience, time.Millisecond)
}

func (b *bench) flushes() int {
	_, n := b.layer.counts()
	return n
}

func TestCutsThatComeSoonAfterAFlushAreFlushedTogether(t *testing.T) {
	for _, background := range []bool{true, false} {
		b := start(t, newFakeCloser(background), Policy{Force: time.Hour, Flush: 300 * time.Millisecond})
		b.cut(t, 1)
		require.Eventually(t, func() bool { return b.flushes() == 1 }, patience, time.Millisecond)
		for next := range int64(5) {
			b.cut(t, 2+next)
		}
		seals, _ := b.layer.counts()
		require.Equal(t, 6, seals)
		require.Eventually(t, func() bool { return b.flushes() > 1 }, patience, time.Millisecond,
			"also where nothing comes any more")
		require.Less(t, b.flushes(), 6)
		b.cut(t, 7)
		require.NoError(t, b.end(t))
		require.Greater(t, b.flushes(), 2, "who drains leaves nothing")
	}
}

func TestMuchIsFlushedAtOnce(t *testing.T) {
	b := start(t, newFakeCloser(true), Policy{Force: time.Hour, Flush: time.Hour})
	b.cut(t, 1)
	require.Eventually(t, func() bool { return b.flushes() == 1 }, patience, time.Millisecond)
	b.cut(t, 2)
	require.Equal(t, 1, b.flushes())
	b.layer.mu.Lock()
	b.layer.heavy = true
	b.layer.mu.Unlock()
	b.cut(t, 3)
	require.Eventually(t, func() bool { return b.flushes() == 2 }, patience, time.Millisecond)
	require.NoError(t, b.end(t))
}

func TestALateFlushThatFailsEndsTheSeries(t *testing.T) {
	b := start(t, newFakeCloser(true), Policy{Force: time.Hour, Flush: 50 * time.Millisecond})
	b.cut(t, 1)
	require.Eventually(t, func() bool { return b.flushes() == 1 }, patience, time.Millisecond)
	b.layer.mu.Lock()
	b.layer.err = errFake
	b.layer.mu.Unlock()
	b.cut(t, 2)
	require.ErrorIs(t, <-b.result, errFake)
}
