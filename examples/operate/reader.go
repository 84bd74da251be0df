package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors"
)

// reader reads the committed records of a topic up to its present end, as often as wanted.
type reader struct {
	follower *processors.Follower
	topic    string
	next     map[int32]int64
	stop     func()
	slow     func() (stop func())
}

// reader returns a reader of a topic, which the caller closes.
func (o *operator) reader(ctx context.Context, topic string) (*reader, error) {
	if err := o.cluster.need(topic); err != nil {
		return nil, err
	}
	f, err := processors.NewFollower(o.brokers, []string{topic}, func(processors.Inbound) {}, o.options...)
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(ctx)
	go func() { _ = f.Run(running) }() // returns nil when running ends
	r := &reader{follower: f, topic: topic, next: map[int32]int64{}, stop: stop, slow: func() func() { return o.slow("the records of %s", topic) }}
	quiet := r.slow()
	defer quiet()
	select {
	case <-f.Ready():
		return r, nil
	case <-ctx.Done():
		stop()
		return nil, r.late(ctx)
	}
}

func (r *reader) close() { r.stop() }

func (r *reader) late(ctx context.Context) error {
	return fmt.Errorf("the topic %s was not read: %w; it may be large (set a longer --timeout), or the principal may not READ it (-v logs why)",
		r.topic, context.Cause(ctx))
}

// all passes the records of all partitions to take that were not passed before.
func (r *reader) all(ctx context.Context, take func(processors.Inbound)) error {
	quiet := r.slow()
	defer quiet()
	partitions, err := r.partitions(ctx)
	if err != nil {
		return err
	}
	for _, p := range partitions {
		if err := r.partition(ctx, p, take); err != nil {
			return err
		}
	}
	return nil
}

// of is all for the partition of a key.
func (r *reader) of(ctx context.Context, key string, take func(processors.Inbound)) error {
	partitions, err := r.partitions(ctx)
	if err != nil {
		return err
	}
	return r.partition(ctx, codec.PartitionOf(key, int32(len(partitions))), take)
}

func (r *reader) partitions(ctx context.Context) ([]int32, error) {
	return within(ctx, "the partitions of "+r.topic, func() ([]int32, error) { return r.follower.Partitions(r.topic) })
}

func (r *reader) partition(ctx context.Context, p int32, take func(processors.Inbound)) error {
	begin := r.next[p]
	next, err := within(ctx, r.topic, func() (int64, error) { // the requests for offsets do not end with ctx
		return r.follower.ReplayFrom(ctx, r.topic, p, begin, func(_ context.Context, in processors.Inbound) bool {
			take(in)
			return ctx.Err() == nil
		})
	})
	if ctx.Err() != nil {
		return r.late(ctx)
	}
	if err != nil {
		return fmt.Errorf("read %s/%d: %w", r.topic, p, err)
	}
	r.next[p] = max(next, begin)
	return nil
}

// record returns a record that was passed before.
func (r *reader) record(ctx context.Context, p int32, offset int64) (found processors.Inbound, err error) {
	ok, err := within(ctx, r.topic, func() (ok bool, err error) {
		_, err = r.follower.ReplayRange(ctx, r.topic, p, offset, offset+1, func(_ context.Context, in processors.Inbound) bool {
			found, ok = in, in.Offset == offset
			return !ok
		})
		return ok, err
	})
	switch {
	case ctx.Err() != nil:
		return processors.Inbound{}, r.late(ctx)
	case err == nil && !ok:
		err = errors.New("the topic no longer has it")
	}
	if err != nil {
		return processors.Inbound{}, fmt.Errorf("read %s/%d/%d: %w", r.topic, p, offset, err)
	}
	return found, nil
}

// poll is how often a command looks for the effect of its record.
const poll = 100 * time.Millisecond

// await passes new records of a key's partition to take until done returns true. It fails when ctx ends.
func (r *reader) await(ctx context.Context, key string, take func(processors.Inbound), done func() bool) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		if err := r.of(ctx, key, take); err != nil || done() {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
