package instance

import (
	"errors"
	"fmt"
	"slices"

	"github.com/IBM/sarama"
	"go.uber.org/zap"
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
	r.warnOfMissingOutputs()
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

// Optional marks the codec of an output that not every deployment of a graph has.
type Optional interface{ Optional() }

// warnOfMissingOutputs names the outputs that do not exist. They are no errors: their topics may be of another program, which
// starts later.
func (r *run) warnOfMissingOutputs() {
	inst := r.instance
	existing, err := r.topics.Client.Topics() // of the metadata that the inputs were looked up in
	if err != nil {
		return
	}
	for _, out := range inst.cfg.Graph.OutputStreams() {
		if _, ok := out.Codec().(Optional); !ok && out.Topic() != inst.cfg.DeadLetters && !slices.Contains(existing, out.Topic()) {
			inst.cfg.Logger.Warn("an output does not exist: unless the brokers create topics themselves, the first record for it stops "+
				"the processor until it exists; create it, for example with processors.WithTopicSpecs",
				zap.String("group", inst.group), zap.String("topic", out.Topic()))
		}
	}
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
