package instance

import (
	"errors"
	"fmt"

	"github.com/IBM/sarama"
)

// prepare checks the topics, creates the dead-letter topic and commits start offsets before Goka starts.
func (r *run) prepare() error {
	inst := r.instance
	partitions, err := r.topics.Partitions(inst.firstInput())
	if err != nil {
		return fmt.Errorf("instance: group %s: %w", inst.group, err)
	}
	r.partitions.Store(int32(len(partitions)))
	if err := r.describeInputs(); err != nil {
		return fmt.Errorf("instance: group %s: %w", inst.group, err)
	}
	if err := r.prepareDeadLetters(len(partitions)); err != nil {
		return err
	}
	r.describeLimits()
	if inst.seen && r.inputs.recreated(inst.inputs) == "" {
		return nil
	}
	if err := r.startInputs(); err != nil {
		return fmt.Errorf("instance: group %s: committed offsets: %w", inst.group, err)
	}
	inst.seen, inst.inputs = true, r.inputs
	return nil
}

// prepareDeadLetters creates the dead-letter topic, so that it does not depend on the broker's auto-creation of topics. An
// existing one may have any number of partitions.
func (r *run) prepareDeadLetters(partitions int) error {
	inst := r.instance
	for _, out := range inst.cfg.Graph.OutputStreams() {
		if out.Topic() != inst.cfg.DeadLetters {
			continue
		}
		if existing, err := r.topics.Partitions(out.Topic()); err == nil && len(existing) > 0 {
			return nil
		}
		err := r.topics.EnsureTopicExists(out.Topic(), partitions, int(inst.cfg.Replication),
			map[string]string{"cleanup.policy": "delete"})
		if err != nil {
			return fmt.Errorf("instance: group %s: dead letters: %w", inst.group, err)
		}
	}
	return nil
}

// offsetsOf returns the committed offsets of a group; none if the group does not exist or its name is empty.
func offsetsOf(admin sarama.ClusterAdmin, group string) (*sarama.OffsetFetchResponse, error) {
	if group == "" {
		return &sarama.OffsetFetchResponse{}, nil
	}
	committed, err := admin.ListConsumerGroupOffsets(group, nil)
	if errors.Is(err, sarama.ErrGroupIDNotFound) {
		return &sarama.OffsetFetchResponse{}, nil
	}
	return committed, err
}
