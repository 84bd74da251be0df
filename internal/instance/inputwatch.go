package instance

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errRecreated says that an input is another topic of the same name than when the attempt began. The next attempt starts
// it at its oldest offset.
var errRecreated = errors.New("unit: an input has changed")

// watchInputs fails the attempt when an input was recreated or has gained partitions, until ctx ends. Sarama reads on at
// the old offset of a topic that was recreated, and tells only one member of a group about new partitions.
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
		found, err := r.topics.Describe(r.together()...)
		if err != nil {
			continue // the brokers are away: everything else waits for them too
		}
		if err = copartitioned(found); err == nil {
			err = r.changed(found)
		}
		if err != nil {
			r.broken(err)
			return
		}
	}
}

// changed returns an error if an input is not the topic that it was, or has other partitions than the rows of the group.
// An input that is missing now is waited for. Without rows, Sarama rebalances the group over the new partitions.
func (r *run) changed(found inputs) error {
	if topic := found.recreated(r.inputs); topic != "" {
		return fmt.Errorf("%w: topic %s was deleted and recreated", errRecreated, topic)
	}
	for topic, was := range r.inputs {
		now, ok := found[topic]
		switch {
		case !ok || now.Partitions == was.Partitions:
		case r.unit.cfg.Graph.GroupTable() != nil:
			return partedFrom(was.Partitions, topic, now.Partitions)
		default:
			r.partitions.Store(int32(now.Partitions))
		}
	}
	return nil
}
