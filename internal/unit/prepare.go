package unit

import (
	"errors"
	"fmt"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/timer"
)

// prepare looks after the topics and the offsets before Goka does.
func (r *run) prepare() error {
	u := r.unit
	partitions, err := r.topics.Partitions(u.firstInput())
	if err != nil {
		return fmt.Errorf("unit: group %s: %w", u.group, err)
	}
	r.partitions.Store(int32(len(partitions)))
	if err := r.prepareDeadLetters(len(partitions)); err != nil {
		return err
	}
	if u.seen {
		return nil
	}
	if err := r.startNewInputs(); err != nil {
		return err
	}
	u.seen = true
	return nil
}

// prepareDeadLetters creates the dead-letter topic, so that a broker that creates topics by itself, or refuses to, does
// not decide over it. An existing one may have any number of partitions.
func (r *run) prepareDeadLetters(partitions int) error {
	u := r.unit
	for _, out := range u.cfg.Graph.OutputStreams() {
		if out.Topic() != u.cfg.DeadLetters {
			continue
		}
		if existing, err := r.topics.Partitions(out.Topic()); err == nil && len(existing) > 0 {
			return nil
		}
		err := r.topics.EnsureTopicExists(out.Topic(), partitions, int(u.cfg.Replication),
			map[string]string{"cleanup.policy": "delete"})
		if err != nil {
			return fmt.Errorf("unit: group %s: dead letters: %w", u.group, err)
		}
	}
	return nil
}

// startNewInputs commits the newest offset for inputs that the group never had, where it has committed offsets of
// others (R16): a group that takes over from an older application must not read what was never meant for it. For a group
// without any offset it commits the oldest of every input, before anything is read: from then on an input without an
// offset is one that the group never had, however early its first life ends. Where a predecessor has committed offsets,
// it starts there. It is left undone while the group has members: the coordinator takes such commits for an empty group
// only.
func (r *run) startNewInputs() error {
	u := r.unit
	fail := func(err error) error { return fmt.Errorf("unit: group %s: committed offsets: %w", u.group, err) }
	admin, err := sarama.NewClusterAdminFromClient(r.client)
	if err != nil {
		return fail(err)
	}
	committed, err := offsetsOf(admin, u.group)
	if err != nil {
		return fail(err)
	}
	has := map[string]bool{}
	for topic, blocks := range committed.Blocks {
		if topic == string(goka.GroupTable(u.cfg.Graph.Group())) {
			continue // a cut of timers alone commits it, as a stand-in
		}
		for _, b := range blocks {
			has[topic] = has[topic] || b.Offset >= 0
		}
	}
	at, before := sarama.OffsetNewest, &sarama.OffsetFetchResponse{}
	if len(has) == 0 {
		at = sarama.OffsetOldest
		if before, err = offsetsOf(admin, u.cfg.Predecessor); err != nil {
			return fail(err)
		}
	}
	req := &sarama.OffsetCommitRequest{
		Version: 2, ConsumerGroup: u.group, ConsumerGroupGeneration: sarama.GroupGenerationUndefined, RetentionTime: -1,
	}
	started := 0
	for _, in := range u.cfg.Graph.InputStreams() {
		if has[in.Topic()] || in.Topic() == timer.Topic(u.group) {
			continue
		}
		partitions, err := r.topics.Partitions(in.Topic())
		if err != nil {
			return fail(err)
		}
		for _, p := range partitions {
			offset, err := r.client.GetOffset(in.Topic(), p, at)
			if err != nil {
				return fail(err)
			}
			end, err := r.client.GetOffset(in.Topic(), p, sarama.OffsetNewest)
			if err != nil {
				return fail(err)
			}
			if b := before.GetBlock(in.Topic(), p); b != nil && b.Offset > offset && b.Offset <= end {
				offset = b.Offset
				u.cfg.Logger.Info("an input starts where the predecessor stopped", zap.String("topic", in.Topic()),
					zap.Int32("partition", p), zap.Int64("offset", offset), zap.String("predecessor", u.cfg.Predecessor))
			}
			req.AddBlock(in.Topic(), p, offset, 0, "")
			started++
		}
		if at == sarama.OffsetNewest {
			u.cfg.Logger.Info("an input that the group never had starts at its newest offset",
				zap.String("topic", in.Topic()))
		}
	}
	if started == 0 {
		return nil
	}
	coordinator, err := r.client.Coordinator(u.group)
	if err != nil {
		return fail(err)
	}
	resp, err := coordinator.CommitOffset(req)
	if err != nil {
		return fail(err)
	}
	for topic, partitions := range resp.Errors {
		for p, kerr := range partitions {
			if kerr != sarama.ErrNoError && at == sarama.OffsetNewest {
				u.cfg.Logger.Warn("the input starts at its oldest offset: the group has members",
					zap.String("topic", topic), zap.Int32("partition", p), zap.Error(kerr))
			}
		}
	}
	return nil
}

// offsetsOf are the committed offsets of a group; none where it is not there, or has no name.
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
