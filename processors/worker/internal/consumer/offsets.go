package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/processors/worker/internal/consumer/progress"
)

// coordinator is what a member asks of the broker that coordinates its group, and of those that have its partitions.
type coordinator interface {
	// fetch returns the commits of partitions. A partition without a commit has a negative offset.
	fetch(partitions map[string][]int32) (map[at]progress.Commit, error)
	// commit commits checkpoints as a member. It returns those that the broker has stored, and the first error of the others.
	commit(m membership, points map[at]progress.Checkpoint) (map[at]progress.Checkpoint, error)
	// members returns the members of the group.
	members() (map[progress.Runner]bool, error)
	// notes returns the notes in all commits of the group.
	notes() ([]progress.Note, error)
	// end returns the high watermark of a partition.
	end(where at) (int64, error)
	// confirm renews a lease by a heartbeat of the member, unless the group rebalances.
	confirm(ctx context.Context, lease *cut.Lease, m membership) error
	close(logger *zap.Logger)
}

// offsets is the coordinator of a group. It has a client of its own: on the client that reads records, a commit would wait
// behind the fetch in flight.
type offsets struct {
	client   sarama.Client
	group    string
	instance string

	limit   int // of the metadata
	commits int // requests so far
}

func newOffsets(c Config) (*offsets, error) {
	client, err := sarama.NewClient(c.Brokers, c.committing())
	if err != nil {
		return nil, err
	}
	return &offsets{client: client, group: c.Group, instance: c.InstanceID, limit: progress.MaxMetadata}, nil
}

func (o *offsets) close(logger *zap.Logger) {
	if err := o.client.Close(); err != nil {
		logger.Warn("the client of a consumer group's offsets was not closed", zap.String("group", o.group), zap.Error(err))
	}
}

// at identifies a partition.
type at struct {
	topic string
	id    int32
}

// membership identifies the member in one generation of the group.
type membership struct {
	id         string
	generation int32
}

func (o *offsets) fetch(partitions map[string][]int32) (map[at]progress.Commit, error) {
	coordinator, err := o.client.Coordinator(o.group)
	if err != nil {
		return nil, err
	}
	resp, err := coordinator.FetchOffset(sarama.NewOffsetFetchRequest(o.client.Config().Version, o.group, partitions))
	if err != nil {
		_ = coordinator.Close()
		return nil, err
	}
	if err := resp.GroupError(); err != sarama.ErrNoError {
		_ = o.client.RefreshCoordinator(o.group)
		return nil, err
	}
	commits := map[at]progress.Commit{}
	for topic, ids := range partitions {
		for _, id := range ids {
			block := resp.GetBlock(topic, id)
			switch {
			case block == nil:
				return nil, fmt.Errorf("%s/%d: %w", topic, id, sarama.ErrIncompleteResponse)
			case block.Err != sarama.ErrNoError:
				_ = o.client.RefreshCoordinator(o.group)
				return nil, fmt.Errorf("%s/%d: %w", topic, id, block.Err)
			}
			commits[at{topic, id}] = progress.Commit{Offset: block.Offset, Metadata: block.Metadata}
		}
	}
	return commits, nil
}

func (o *offsets) members() (map[progress.Runner]bool, error) {
	coordinator, err := o.client.Coordinator(o.group)
	if err != nil {
		return nil, err
	}
	resp, err := coordinator.DescribeGroups(&sarama.DescribeGroupsRequest{Version: 3, Groups: []string{o.group}})
	if err != nil {
		_ = coordinator.Close()
		return nil, err
	}
	if len(resp.Groups) != 1 {
		return nil, sarama.ErrIncompleteResponse
	}
	if err := resp.Groups[0].Err; err != sarama.ErrNoError {
		_ = o.client.RefreshCoordinator(o.group)
		return nil, err
	}
	members := map[progress.Runner]bool{}
	for id := range resp.Groups[0].Members {
		members[progress.RunnerOf(id)] = true
	}
	return members, nil
}

func (o *offsets) notes() ([]progress.Note, error) {
	coordinator, err := o.client.Coordinator(o.group)
	if err != nil {
		return nil, err
	}
	resp, err := coordinator.FetchOffset(sarama.NewOffsetFetchRequest(o.client.Config().Version, o.group, nil))
	if err != nil {
		_ = coordinator.Close()
		return nil, err
	}
	if err := resp.GroupError(); err != sarama.ErrNoError {
		_ = o.client.RefreshCoordinator(o.group)
		return nil, err
	}
	topics := resp.Blocks
	if group := resp.GetGroup(o.group); group != nil {
		topics = group.Blocks
	}
	var notes []progress.Note
	for _, blocks := range topics {
		for _, b := range blocks {
			c, _ := progress.Decode(b.Offset, b.Metadata)
			notes = append(notes, c.Notes...)
		}
	}
	return notes, nil
}

func (o *offsets) commit(m membership, points map[at]progress.Checkpoint) (map[at]progress.Checkpoint, error) {
	stored, err := o.send(m, points)
	if errors.Is(err, sarama.ErrOffsetMetadataTooLarge) {
		// The broker's limit is lower than the default. Smaller metadata repeats more after a rebalance; none is always
		// accepted.
		o.limit /= 4
		return o.send(m, points)
	}
	return stored, err
}

func (o *offsets) send(m membership, points map[at]progress.Checkpoint) (map[at]progress.Checkpoint, error) {
	coordinator, err := o.client.Coordinator(o.group)
	if err != nil {
		return nil, err
	}
	req := sarama.NewOffsetCommitRequest(o.client.Config(), o.group)
	req.ConsumerID, req.ConsumerGroupGeneration = m.id, m.generation
	if o.instance != "" {
		req.GroupInstanceId = &o.instance
	}
	for p, c := range points {
		req.AddBlockWithLeaderEpoch(p.topic, p.id, c.Next, -1, 0, c.Encode(o.limit))
	}
	o.commits++
	resp, err := coordinator.CommitOffset(req)
	if err != nil {
		_ = coordinator.Close()
		return nil, err
	}
	stored := map[at]progress.Checkpoint{}
	for p, c := range points {
		code, ok := resp.Errors[p.topic][p.id]
		switch {
		case !ok:
			err = fmt.Errorf("%s/%d: %w", p.topic, p.id, sarama.ErrIncompleteResponse)
		case code != sarama.ErrNoError:
			err = fmt.Errorf("%s/%d: %w", p.topic, p.id, code)
		default:
			stored[p] = c
		}
	}
	if err != nil && !lostMembership(err) {
		_ = o.client.RefreshCoordinator(o.group)
	}
	return stored, err
}

func (o *offsets) end(where at) (int64, error) {
	return o.client.GetOffset(where.topic, where.id, sarama.OffsetNewest)
}

func (o *offsets) confirm(ctx context.Context, lease *cut.Lease, m membership) error {
	return lease.ConfirmStable(ctx, o.client, cut.Member{Group: o.group, ID: m.id, Generation: m.generation, InstanceID: o.instance})
}

// lostMembership reports whether the coordinator accepts no commits of this generation any more. The heartbeat gets the same
// answer and ends the session.
func lostMembership(err error) bool {
	return errors.Is(err, sarama.ErrIllegalGeneration) || errors.Is(err, sarama.ErrUnknownMemberId) ||
		errors.Is(err, sarama.ErrRebalanceInProgress) || errors.Is(err, sarama.ErrFencedInstancedId)
}

// unknownOutcome reports whether a request may have been carried out, or may be yet, although it has failed: the coordinator has
// not refused it.
func unknownOutcome(err error) bool {
	var refused sarama.KError
	return !errors.As(err, &refused)
}

// pause waits for d or until ctx ends, and reports whether ctx is still active.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
