package instance

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errRecreated says that an input was deleted and recreated during the run. The next run starts it at its oldest
// offset.
var errRecreated = errors.New("instance: an input has changed")

// watchInputs fails the run when an input was recreated or has gained partitions, until ctx ends. Sarama continues at
// the old offset of a topic that was recreated, and notifies only one member of a group of new partitions.
func (r *run) watchInputs(ctx context.Context, every time.Duration) {
	if every <= 0 {
		return
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		found, err := r.topics.Describe(r.described()...)
		if err != nil {
			continue // no broker answers: retry at the next tick
		}
		if err = r.copartitioned(found); err == nil {
			err = r.changed(found)
		}
		if err != nil {
			r.broken(err)
			return
		}
	}
}

// changed returns an error if an input was recreated, or has another number of partitions than the rows of the group. It
// ignores an input that is missing now. Sarama rebalances a group over the new partitions of an input that is repartitioned,
// or that belongs to a group without a table and thus without rows.
func (r *run) changed(found inputs) error {
	if topic := found.recreated(r.inputs); topic != "" {
		return fmt.Errorf("%w: topic %s was deleted and recreated", errRecreated, topic)
	}
	for topic, was := range r.inputs {
		now, ok := found[topic]
		switch {
		case !ok || now.Partitions == was.Partitions || r.instance.repartitions(topic):
		case r.instance.cfg.Graph.GroupTable() != nil:
			return partedFrom(was.Partitions, topic, now.Partitions)
		default:
			r.partitions.Store(int32(now.Partitions))
		}
	}
	return nil
}
