package instance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"
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
		if topic, ok := r.unread(found); ok {
			r.instance.cfg.Logger.Info("joining again: no member of the group reads all partitions of an input", zap.String("topic", topic))
			r.mu.Lock()
			g := r.group
			r.mu.Unlock()
			if g != nil {
				g.Rejoin()
			}
		}
	}
}

// unread returns an input of which no member of the group reads some partition. A static member that starts again gets its former
// assignment without a rebalance, so that partitions which were added while it was away have no reader. There is none while
// the group rebalances, or if the brokers do not say.
func (r *run) unread(found inputs) (topic string, ok bool) {
	if r.instance.cfg.InstanceID == "" {
		return "", false
	}
	admin, err := sarama.NewClusterAdminFromClient(r.client) // closing it would close the client
	if err != nil {
		return "", false
	}
	groups, err := admin.DescribeConsumerGroups([]string{string(r.instance.cfg.Graph.Group())})
	if err != nil || len(groups) != 1 || groups[0].State != "Stable" {
		return "", false
	}
	read := map[string]int{}
	for _, m := range groups[0].Members {
		assigned, err := m.GetMemberAssignment()
		if err != nil || assigned == nil {
			return "", false
		}
		for topic, partitions := range assigned.Topics {
			read[topic] += len(partitions)
		}
	}
	for topic := range r.inputs {
		if now, exists := found[topic]; exists && read[topic] < int(now.Partitions) {
			return topic, true
		}
	}
	return "", false
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
