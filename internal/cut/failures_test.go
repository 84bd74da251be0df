package cut

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/IBM/sarama/mocks"
	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

// A claim that starts late notes its position at any time: a blocking closer is not begun while it closes, which a
// transactional producer answers with an error that ends the instance.
func TestPositionIsNotedBehindACutThatIsBeingClosed(t *testing.T) {
	c := newFakeCloser(false)
	c.hold = make(chan struct{})
	b := start(t, c, Policy{Force: time.Millisecond})
	release := sync.OnceFunc(func() { close(c.hold) })
	t.Cleanup(release)
	require.True(t, b.Acquire(in0, 1, 1))
	b.Release()
	<-c.entered
	noted := make(chan struct{})
	go func() {
		defer close(noted)
		b.Note(Partition{"late", 0}, 7)
	}()
	select {
	case <-noted:
	case <-time.After(20 * time.Millisecond):
	}
	c.mu.Lock()
	begins := c.begins
	c.mu.Unlock()
	require.Equal(t, 1, begins, "begun while it closes")
	release()
	<-noted
	require.Eventually(t, func() bool { return len(c.committed()) == 2 }, testTimeout, time.Millisecond)
	require.Equal(t, map[Partition]int64{{"late", 0}: 7}, c.committed()[1])
	require.NoError(t, b.end(t))
}

// A slow commit, at a coordinator that hangs, does not shut the gate: only the next cut is made later.
func TestSlowCommitInTheBackgroundDoesNotShutTheGate(t *testing.T) {
	c := newFakeCloser(true)
	c.hold = make(chan struct{})
	b := start(t, c, Policy{Every: time.Millisecond, Force: time.Millisecond})
	release := sync.OnceFunc(func() { close(c.hold) })
	t.Cleanup(release)
	require.True(t, b.Acquire(in0, 1, 1))
	b.Release()
	<-c.entered
	require.True(t, b.Acquire(in0, 2, 1))
	b.Release()
	// Well beyond the age at which the gate shuts for a cut; nothing is in flight that could open it again.
	passed := make(chan bool, 1)
	time.AfterFunc(50*time.Millisecond, func() { passed <- b.Acquire(in0, 3, 1) })
	select {
	case ok := <-passed:
		require.True(t, ok)
	case <-time.After(testTimeout):
		t.Fatal("the gate is shut for as long as the commit lasts")
	}
	b.Release()
	release()
	require.NoError(t, b.end(t))
	require.Equal(t, int64(3), c.committed()[len(c.committed())-1][in0])
}

// A failed series commits nothing, even if everything in flight ends before the drain begins.
func TestRevocationOfAFailedSeriesCommitsNothing(t *testing.T) {
	gone, end := context.WithCancel(t.Context())
	end()
	for range 20 { // a revocation and a failure are met in any order
		c := newFakeCloser(true)
		layer := &fakeLayer{}
		s := NewSeries(c, Policy{Every: time.Hour, Force: time.Hour, Drain: testTimeout, MaxRecords: 10, MaxBytes: 10},
			func() Member { return Member{} }, func() []Layer { return []Layer{layer} }, nil, zap.NewNop())
		require.True(t, s.Acquire(in0, 1, 1))
		s.Fail(errFake)
		s.Release()
		require.ErrorIs(t, s.Run(gone), errFake)
		require.Empty(t, c.committed())
	}
}

func rowProducer(t *testing.T, lease *Lease) (*mocks.AsyncProducer, *Producer) {
	t.Helper()
	conf := sarama.NewConfig()
	conf.Producer.Return.Successes = true
	async := mocks.NewAsyncProducer(t, conf)
	p := NewProducer(async, ProducerOptions{
		Table: "g-table", Lease: lease, Ordered: true, Failed: func(error) {}, Broken: func(error) {},
	})
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return async, p
}

func emitFrom(p *Producer, topic string) chan error {
	done := make(chan error, 1)
	h := goka.Headers{runtimeapi.HeaderPartition: runtimeapi.PartitionHeader(0)}
	p.EmitWithHeaders(topic, "k", []byte("x"), h).Then(func(err error) { done <- err })
	return done
}

// settled waits for the rows of a cut that is made now.
func settled(t *testing.T, p *Producer) error {
	t.Helper()
	rows := p.Seal()
	select {
	case <-rows.Done():
		return rows.Err()
	case <-time.After(testTimeout):
		t.Fatal("the rows are not settled")
		return nil
	}
}

// The row of a later record holds the effects of earlier records of its key. If it were written although an earlier
// record's output was rejected, it would prove an output that is not in Kafka.
func TestNoRowIsWrittenBehindARecordWhoseOutputWasRefused(t *testing.T) {
	async, p := rowProducer(t, nil)
	async.ExpectInputAndFail(sarama.ErrMessageSizeTooLarge)
	async.ExpectInputAndSucceed() // the second record's output, and nothing else

	p.Begin(0, "k")
	first := emitFrom(p, "out")
	emitFrom(p, "g-table")
	p.Begin(0, "k")
	second := emitFrom(p, "out")
	emitFrom(p, "g-table")
	require.ErrorIs(t, <-first, sarama.ErrMessageSizeTooLarge)
	require.NoError(t, <-second)
	require.ErrorIs(t, settled(t, p), sarama.ErrMessageSizeTooLarge)

	p.Begin(0, "k")
	emitFrom(p, "g-table")
	require.ErrorIs(t, settled(t, p), sarama.ErrMessageSizeTooLarge, "nor at once, where it has no outputs itself")
}

// The same holds for an output that the lease blocked, even if the lease is renewed before the row is written.
func TestNoRowIsWrittenBehindAnOutputThatTheLeaseRefused(t *testing.T) {
	lease := NewLease(time.Hour, Now)
	_, p := rowProducer(t, lease) // it takes no record
	p.Begin(0, "k")
	require.ErrorIs(t, <-emitFrom(p, "out"), ErrLease)
	lease.Renew(Now())
	emitFrom(p, "g-table")
	require.ErrorIs(t, settled(t, p), ErrLease)
}

var errFake = errors.New("fake")
