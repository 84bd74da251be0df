package cut

import (
	"errors"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
)

// begin hands out the records of a partition from offset to offset, and starts their callbacks.
func (b *bench) begin(t *testing.T, p Partition, from, to int64) {
	t.Helper()
	for offset := from; offset <= to; offset++ {
		require.True(t, b.Acquire(p, offset+1, 1))
		require.True(t, b.Begun(p, offset))
	}
}

// The committed offset of a record that waits behind a record of another topic has metadata that must not be replaced.
func TestOffsetOfAnUntouchedTopicIsNotCommittedAgainDuringAPause(t *testing.T) {
	c := newFakeCloser(true)
	b := start(t, c, Policy{Force: time.Hour, Every: time.Hour})
	b.begin(t, in0, 4, 4)
	require.True(t, b.Acquire(Partition{"other", 0}, 3, 1))
	b.Pause(in0, 4)
	require.NoError(t, b.end(t))
	require.Equal(t, []map[Partition]int64{{in0: 4}}, c.committed())
}

// While a record is retried, cuts are made without it and the records behind it, and the other partitions continue.
func TestCutsAreMadeWhileATaskIsPaused(t *testing.T) {
	for _, background := range []bool{true, false} {
		c := newFakeCloser(background)
		b := start(t, c, Policy{Force: time.Hour})
		other, in1 := Partition{"other", 0}, Partition{"in", 1}
		b.Note(other, 2)
		b.begin(t, in0, 4, 5)
		require.True(t, b.Acquire(in0, 7, 1), "behind the failed record")
		require.True(t, b.Acquire(other, 3, 1), "of the same task")
		b.Release() // record 4
		b.Pause(in0, 5)
		<-c.entered
		require.Eventually(t, func() bool { return len(c.committed()) == 1 }, testTimeout, time.Millisecond)
		require.Equal(t, map[Partition]int64{in0: 5, other: 2}, c.committed()[0])

		blocked := make(chan bool)
		go func() { blocked <- b.Acquire(in0, 8, 1) }()
		b.begin(t, in1, 0, 0)
		b.Release()
		<-c.entered
		require.Eventually(t, func() bool { return len(c.committed()) == 2 }, testTimeout, time.Millisecond)
		require.Equal(t, map[Partition]int64{in1: 1}, c.committed()[1])

		require.True(t, b.Resume(in0, 5))
		require.True(t, <-blocked)
		b.Release()
		for _, r := range []struct {
			p      Partition
			offset int64
		}{{in0, 6}, {other, 2}, {in0, 7}} {
			require.True(t, b.Begun(r.p, r.offset))
			b.Release()
		}
		require.NoError(t, b.end(t))
		last := map[Partition]int64{}
		for _, offsets := range c.committed()[2:] {
			for p, offset := range offsets {
				last[p] = offset
			}
		}
		require.Equal(t, map[Partition]int64{in0: 8, other: 3}, last)
	}
}

// The last cut of a generation ends before the record that is retried, and nothing behind it has effects.
func TestDrainDoesNotWaitForAPausedTask(t *testing.T) {
	for _, background := range []bool{true, false} {
		c := newFakeCloser(background)
		b := start(t, c, Policy{Force: time.Hour, Every: time.Hour})
		b.begin(t, in0, 4, 5)
		require.True(t, b.Acquire(in0, 7, 1))
		b.Release()
		b.Pause(in0, 5)
		require.NoError(t, b.end(t))
		require.Equal(t, []map[Partition]int64{{in0: 5}}, c.committed())
		<-b.Context().Done()
		require.False(t, b.Resume(in0, 5))
		b.Release()
		require.False(t, b.Begun(in0, 6))
	}
}

func TestFailAfterCutCommitsWhatIsBeforeTheRecord(t *testing.T) {
	for _, background := range []bool{true, false} {
		c := newFakeCloser(background)
		b := start(t, c, Policy{Force: time.Hour, Every: time.Hour})
		b.begin(t, in0, 4, 5)
		b.begin(t, Partition{"in", 1}, 0, 0)
		b.Release()
		cause := errors.New("row of a newer version")
		b.Pause(in0, 5)
		b.FailAfterCut(cause)
		b.Release() // the drain waits for the other partition
		require.ErrorIs(t, <-b.result, cause)
		require.Equal(t, []map[Partition]int64{{in0: 5, {"in", 1}: 1}}, c.committed())
	}
}

// Offsets that a coordinator did not accept while a task was paused do not replace those of the records behind it.
func TestOffsetsOfAPausedTaskThatWereNotCommitted(t *testing.T) {
	c := newFakeCloser(true)
	c.results = []error{ErrNotCommitted}
	b := start(t, c, Policy{Force: time.Hour})
	b.begin(t, in0, 4, 4)
	require.True(t, b.Acquire(in0, 6, 1))
	b.Pause(in0, 4)
	<-c.entered // not committed
	<-c.entered // the next cut, still paused
	require.True(t, b.Resume(in0, 4))
	b.Release()
	require.True(t, b.Begun(in0, 5))
	b.Release()
	require.NoError(t, b.end(t))
	all := c.committed()
	require.Equal(t, map[Partition]int64{in0: 6}, all[len(all)-1])
}

func TestRecordsThatGokaDoesNotReadHaveNoTask(t *testing.T) {
	c := newFakeCloser(true)
	b := start(t, c, Policy{Force: time.Hour, Every: time.Hour})
	b.repartitioned = Repartitioned{"strays": func(*sarama.ConsumerMessage) Outgoing { return Outgoing{} }}
	b.begin(t, in0, 0, 0)
	b.Pause(in0, 0)
	require.True(t, b.Acquire(Partition{"strays", 0}, 3, 1), "it does not wait for partition 0 of the other topics")
	b.Release()
	require.NoError(t, b.end(t))
	require.Equal(t, []map[Partition]int64{{in0: 0, {"strays", 0}: 3}}, c.committed())
}
