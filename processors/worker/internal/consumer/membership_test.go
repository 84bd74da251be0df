package consumer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/turntable-streams/turntable/processors/embedded"
	"github.com/turntable-streams/turntable/processors/worker/internal/consumer"
	"github.com/turntable-streams/turntable/processors/worker/internal/source"
)

func TestStaticMemberRestartsWithoutARebalance(t *testing.T) {
	f := newField(t, 2)
	var b book
	handle := func(_ context.Context, d source.Delivery) error { b.add(d); return nil }
	one, two := f.worker(handle), f.worker(handle)
	one.InstanceID, two.InstanceID = "worker-1", "worker-2"
	f.run(one)
	// The embedded broker rebalances if a static member returns with another subscription than it joined with. The sticky
	// assignor's subscription changes when a member takes part in a second rebalance.
	f.eventually(func() bool { return one.owned() == 2 })
	stop := f.run(two)
	f.eventually(func() bool { return one.owned() == 1 && two.owned() == 1 })
	generation := one.source.Generation()

	stop()
	f.put(0, 1, keyless)
	f.put(1, 1, keyless)
	f.eventually(func() bool { return b.calls() == 1 })
	f.run(two)
	f.eventually(func() bool { return b.calls() == 2 && f.committed(0) == 1 && f.committed(1) == 1 })
	require.Equal(t, generation, one.source.Generation())
	require.Equal(t, generation, two.source.Generation())
}

func TestFencedStaticMemberStopsWithAnError(t *testing.T) {
	f := newField(t, 1)
	f.put(0, 1, keyless)
	var b book
	ended := make(chan error, 1)
	handle := func(ctx context.Context, d source.Delivery) error {
		b.add(d)
		if b.calls() == 1 {
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return context.Cause(ctx)
		}
		return nil
	}
	one, two := f.worker(handle), f.worker(handle)
	one.InstanceID, two.InstanceID = "worker", "worker"
	fenced := make(chan error, 1)
	go func() {
		fenced <- consumer.New(one.Config).Run(context.Background(), func(ctx context.Context, d source.Delivery) source.Verdict {
			_ = one.handle(ctx, d)
			return source.Released
		})
	}()
	f.eventually(func() bool { return b.calls() == 1 })
	f.run(two)
	require.ErrorIs(t, <-fenced, sarama.ErrFencedInstancedId)
	require.ErrorIs(t, <-ended, source.ErrLost)
	f.eventually(func() bool { return f.committed(0) == 1 })
}

func TestMemberThatWasCutOffEndsTheCallsOfPartitionsThatMoved(t *testing.T) {
	f := newField(t, 2)
	f.put(0, 1, keyless)
	f.put(1, 1, keyless)
	var b book
	release, lost := make(chan struct{}), make(chan error, 4)
	handle := func(ctx context.Context, d source.Delivery) error {
		b.add(d)
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			lost <- context.Cause(ctx)
			return context.Cause(ctx)
		}
	}
	one := f.worker(handle)
	f.run(one)
	f.eventually(func() bool { return b.calls() == 2 })
	one.wires.cut()
	f.run(f.worker(handle))
	f.eventually(func() bool { return b.calls() == 4 }, "the broker removes the member, and its records are delivered again")
	require.Empty(t, lost)
	one.wires.mend()
	require.ErrorIs(t, <-lost, source.ErrLost, "of the partition that did not return")
	close(release)
	f.eventually(func() bool { return f.committed(0) == 1 && f.committed(1) == 1 })
	require.Empty(t, lost)
	require.Equal(t, 4, b.calls())
}

// A process that was suspended has records that it fetched before it learns that its partition has moved.
func TestSuspendedMemberStartsNothingBeforeItsGroupHasAnswered(t *testing.T) {
	f := newField(t, 1)
	var b book
	handle := func(_ context.Context, d source.Delivery) error {
		b.add(d)
		return nil
	}
	one := f.worker(handle)
	f.run(one)
	f.put(0, 1, keyless)
	f.eventually(func() bool { return f.committed(0) == 1 })
	thaw := one.wires.freeze()
	defer thaw()
	f.put(0, 20, keyless) // answers the fetch that is in flight
	f.run(f.worker(handle))
	f.eventually(func() bool { return f.committed(0) == 21 }, "the other member has the partition")
	thaw()
	f.eventually(func() bool { return one.owned() == 0 })
	f.put(0, 10, keyless)
	f.eventually(func() bool { return f.committed(0) == 31 })
	require.Equal(t, 31, b.calls())
}

// A handler prepares its call while the process is suspended and another member makes the call.
func TestSuspendedMemberConfirmsNoRecordThatHasMoved(t *testing.T) {
	f := newField(t, 1)
	began, release, confirmed := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	one := f.worker(func(ctx context.Context, d source.Delivery) error {
		close(began)
		<-release
		d.Confirm(ctx)
		confirmed <- context.Cause(ctx)
		return ctx.Err()
	})
	f.run(one)
	f.put(0, 1, keyless)
	<-began
	thaw := one.wires.freeze()
	defer thaw()
	f.run(f.worker(func(context.Context, source.Delivery) error { return nil }))
	f.eventually(func() bool { return f.committed(0) == 1 }, "the other member has the record")
	close(release)
	thaw()
	require.ErrorIs(t, <-confirmed, source.ErrLost)
}

func TestSettledRecordsAreKeptWhileCommitsFail(t *testing.T) {
	f := newField(t, 1)
	f.put(0, 20, keyless)
	var b book
	first := make(chan struct{})
	w := f.worker(func(_ context.Context, d source.Delivery) error {
		if d.Record.Offset == 0 {
			<-first
		}
		b.add(d)
		return nil
	})
	f.run(w)
	f.eventually(func() bool { return b.calls() == 19 })
	w.wires.cut() // the end of the generation cannot be committed
	f.eventually(func() bool { return !w.source.Status().Joined && w.source.Generation() == 0 })
	close(first)
	f.eventually(func() bool { return b.calls() == 20 })
	w.wires.mend()
	f.eventually(func() bool { return f.committed(0) == 20 })
	require.Equal(t, 20, b.calls())
}

func TestBrokerWithASmallMetadataLimitIsServed(t *testing.T) {
	t.Parallel()
	broker, err := embedded.Start(embedded.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, broker.Close()) })
	broker.Cluster().ControlKey(int16(kmsg.OffsetCommit), func(r kmsg.Request) (kmsg.Response, error, bool) {
		broker.Cluster().KeepControl()
		req := r.(*kmsg.OffsetCommitRequest)
		resp := req.ResponseKind().(*kmsg.OffsetCommitResponse)
		tooLarge := false
		for _, topic := range req.Topics {
			rt := kmsg.NewOffsetCommitResponseTopic()
			rt.Topic = topic.Topic
			for _, p := range topic.Partitions {
				rp := kmsg.NewOffsetCommitResponseTopicPartition()
				rp.Partition = p.Partition
				if p.Metadata != nil && len(*p.Metadata) > 10 {
					tooLarge, rp.ErrorCode = true, kerr.OffsetMetadataTooLarge.Code
				}
				rt.Partitions = append(rt.Partitions, rp)
			}
			resp.Topics = append(resp.Topics, rt)
		}
		return resp, nil, tooLarge
	})
	f := newFieldAt(t, broker.Addrs(), 1)
	f.put(0, 10, keyless)
	var b book
	stop := f.run(f.worker(func(_ context.Context, d source.Delivery) error { b.add(d); return nil }))
	f.eventually(func() bool { return f.committed(0) == 10 })
	stop()
	f.put(0, 1, keyless)
	repeated := make(chan bool, 1)
	f.run(f.worker(func(_ context.Context, d source.Delivery) error { repeated <- d.Repeated; return nil }))
	require.True(t, <-repeated, "without metadata the record may have been handled")
	require.Equal(t, 10, b.calls())
}

func TestOffsetsOfAnotherProgramAreTakenOver(t *testing.T) {
	f := newField(t, 1)
	f.put(0, 5, keyless)
	require.NoError(t, f.commit(0, 2, "another program"))
	var b book
	repeated := make(chan bool, 5)
	w := f.worker(func(_ context.Context, d source.Delivery) error { b.add(d); repeated <- d.Repeated; return nil })
	f.run(w)
	f.eventually(func() bool { return f.committed(0) == 5 })
	require.Equal(t, 3, b.calls())
	require.Equal(t, []bool{true, true, true}, []bool{<-repeated, <-repeated, <-repeated})
	f.put(0, 1, keyless)
	require.False(t, <-repeated)
}

func TestLateEndOfAHandlerIsWaitedFor(t *testing.T) {
	f := newField(t, 1)
	f.put(0, 1, keyless)
	began, release := make(chan struct{}), make(chan struct{})
	w := f.worker(func(ctx context.Context, _ source.Delivery) error {
		close(began)
		select {
		case <-release:
			return nil
		case <-ctx.Done(): // a stop is the core's business
			return errors.New("the source ended the call")
		}
	})
	stop := f.run(w)
	<-began
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	f.eventually(func() bool { return !w.source.Status().Joined })
	require.Never(t, func() bool {
		select {
		case <-stopped:
			return true
		default:
			return w.source.Generation() == 0
		}
	}, time.Second, 50*time.Millisecond, "the member stays in its group while a call runs")
	close(release)
	<-stopped
	require.EqualValues(t, 1, f.committed(0))
}
