package cut

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// Plain is the closer of at-least-once: it commits offsets in the background, by OffsetCommit requests of a client of
// its own. Sarama's session.Commit would wait behind the long-poll fetch on its connection (385 ms measured).
type Plain struct {
	client  sarama.Client
	listing *Listing
}

// NewPlain returns the at-least-once closer. It does not own client. listing may be nil.
func NewPlain(client sarama.Client, listing *Listing) *Plain {
	return &Plain{client: client, listing: listing}
}

// Background implements Closer: repeats after a crash are harmless, so nothing waits for a commit.
func (*Plain) Background() bool { return true }

// Begin implements Closer.
func (*Plain) Begin() error { return nil }

// Abort implements Closer.
func (*Plain) Abort() error { return nil }

// commitAttempts and commitPause bound how often a cut's offsets are retried before they are left to the next cut.
const (
	commitAttempts = 4
	commitPause    = 50 * time.Millisecond
)

// Close implements Closer: it commits offsets as the member. It retries three times with a growing pause and then returns
// an error that wraps ErrNotCommitted; at once if the member has lost its membership. The error wraps ErrFenced if another
// process has joined with the instance id, and ErrUnauthorized if the broker denies the commit.
func (p *Plain) Close(ctx context.Context, offsets map[Partition]int64, m Member) error {
	if len(offsets) == 0 {
		return nil
	}
	var err error
	for attempt := range commitAttempts {
		if attempt > 0 {
			if !pause(ctx, commitPause<<attempt) {
				break
			}
			_ = p.client.RefreshCoordinator(m.Group)
		}
		err = p.commit(offsets, m)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, sarama.ErrFencedInstancedId):
			return fmt.Errorf("%w: group %s, instance %s", ErrFenced, m.Group, m.InstanceID)
		case errors.Is(err, sarama.ErrOffsetMetadataTooLarge):
			p.listing.refuse()
		case unauthorized(err):
			return fmt.Errorf("%w: commit of group %s: %w", ErrUnauthorized, m.Group, err)
		case lostMembership(err):
			return fmt.Errorf("%w: group %s, generation %d: %w", ErrNotCommitted, m.Group, m.Generation, err)
		}
	}
	return fmt.Errorf("%w: group %s: %w", ErrNotCommitted, m.Group, err)
}

func (p *Plain) commit(offsets map[Partition]int64, m Member) error {
	coordinator, err := p.client.Coordinator(m.Group)
	if err != nil {
		return err
	}
	req := &sarama.OffsetCommitRequest{
		Version:                 7,
		ConsumerGroup:           m.Group,
		ConsumerGroupGeneration: m.Generation,
		ConsumerID:              m.ID,
		RetentionTime:           -1,
	}
	if m.InstanceID != "" {
		req.GroupInstanceId = &m.InstanceID
	}
	for at, offset := range offsets {
		req.AddBlockWithLeaderEpoch(at.Topic, at.ID, offset, -1, 0, p.listing.Metadata(at, offset))
	}
	resp, err := coordinator.CommitOffset(req)
	if err != nil {
		_ = coordinator.Close()
		return err
	}
	return refusals(resp)
}

// refusals joins the errors of a response to a commit, one of each kind: one partition's error must not hide another's.
func refusals(resp *sarama.OffsetCommitResponse) error {
	seen := map[sarama.KError]bool{sarama.ErrNoError: true}
	var errs []error
	for topic, partitions := range resp.Errors {
		for partition, kerr := range partitions {
			if !seen[kerr] {
				seen[kerr] = true
				errs = append(errs, fmt.Errorf("%s/%d: %w", topic, partition, kerr))
			}
		}
	}
	return errors.Join(errs...)
}

// lostMembership reports whether the coordinator no longer accepts commits of this generation. Sarama's heartbeat gets the
// same error and ends the session.
func lostMembership(err error) bool {
	return errors.Is(err, sarama.ErrIllegalGeneration) || errors.Is(err, sarama.ErrUnknownMemberId) ||
		errors.Is(err, sarama.ErrRebalanceInProgress)
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
