package cut

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"
)

// Lease guards every send of an at-least-once member: Kafka accepts the records of an idempotent producer even from a
// process that was suspended and resumed after its partitions had moved. Nothing is sent once the last heartbeat that the
// coordinator acknowledged is older than the limit: the producer (Producer.mayEmit) and its connections (LeaseDialer) fail with
// ErrLease, and the instance restarts. It is safe for concurrent use.
type Lease struct {
	limit time.Duration
	now   func() Instant
	last  atomic.Pointer[Instant]
	begun atomic.Bool // the lease was held at some time
}

// NewLease returns a lease that expires limit after its last renewal; limit must be below the session timeout. It is
// expired until it is first renewed. now is usually Now. If the wall clock is set forward by more than limit, the lease
// expires and the instance restarts.
func NewLease(limit time.Duration, now func() Instant) *Lease {
	return &Lease{limit: limit, now: now}
}

// Renew records that the coordinator has acknowledged a request that was sent at the given time.
func (l *Lease) Renew(sent Instant) {
	l.last.Store(&sent)
	l.begun.Store(true)
}

// Drop makes the lease expire at once. A nil lease stays held.
func (l *Lease) Drop() {
	if l != nil {
		l.last.Store(nil)
	}
}

// Held reports whether records may be sent. A nil lease is always held.
func (l *Lease) Held() bool {
	if l == nil {
		return true
	}
	last := l.last.Load()
	return last != nil && l.now().Since(*last) < l.limit
}

// Lost reports whether the lease was held and has expired since. Before the first renewal it is neither held nor lost. A
// nil lease is never lost.
func (l *Lease) Lost() bool { return l != nil && l.begun.Load() && !l.Held() }

// confirmations and confirmPause bound the heartbeats that Confirm sends.
const (
	confirmations = 3
	confirmPause  = 50 * time.Millisecond
)

// Confirm renews the lease by a heartbeat before any work is done in a generation. The answer to the join does not prove
// the membership: the process or the machine may have been suspended since. Confirm tries three heartbeats and then
// returns an error that wraps ErrLease; it returns at once if the member was fenced or has lost its membership.
func (l *Lease) Confirm(ctx context.Context, client sarama.Client, m Member) error {
	return l.confirm(ctx, client, m, false)
}

// ConfirmStable is Confirm for work that outlives a generation. If the group rebalances, it returns the broker's error and does not
// renew the lease: the rebalance may end without the member at any time.
func (l *Lease) ConfirmStable(ctx context.Context, client sarama.Client, m Member) error {
	return l.confirm(ctx, client, m, true)
}

func (l *Lease) confirm(ctx context.Context, client sarama.Client, m Member, stable bool) error {
	for attempt := 1; ; attempt++ {
		sent := l.now()
		err := heartbeat(client, m)
		rebalance := errors.Is(err, sarama.ErrRebalanceInProgress)
		switch {
		case err == nil, rebalance && !stable:
			l.Renew(sent)
			return nil
		case rebalance, errors.Is(err, sarama.ErrFencedInstancedId), lostMembership(err):
			return err
		case attempt == confirmations, !pause(ctx, confirmPause):
			return fmt.Errorf("%w: %w", ErrLease, err)
		}
		_ = client.RefreshCoordinator(m.Group)
	}
}

// Keep renews the lease by heartbeats of its own client until ctx ends, since the answers to Sarama's heartbeats are not
// visible. It drops the lease and returns when the membership is lost. If another process has taken the instance id, it
// calls fenced with an error that wraps ErrFenced.
func (l *Lease) Keep(ctx context.Context, client sarama.Client, every time.Duration, member func() Member,
	fenced func(error), log *zap.Logger,
) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		m, sent := member(), l.now()
		switch err := heartbeat(client, m); {
		case err == nil, errors.Is(err, sarama.ErrRebalanceInProgress):
			l.Renew(sent)
		case errors.Is(err, sarama.ErrFencedInstancedId):
			fenced(fmt.Errorf("%w: group %s, instance %s", ErrFenced, m.Group, m.InstanceID))
			l.Drop()
			return
		case lostMembership(err):
			l.Drop()
			log.Warn("group membership lost: the member stops sending", zap.Error(err))
			return // Sarama's session ends by the same answer
		default:
			log.Debug("heartbeat failed", zap.Error(err))
			_ = client.RefreshCoordinator(m.Group)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Watch blocks until the lease expires and calls expired once. It returns without the call when ctx ends or the lease is
// dropped. Without Watch a member that has nothing to send would not notice that its partitions may have moved.
func (l *Lease) Watch(ctx context.Context, expired func(error)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		last := l.last.Load()
		if last == nil {
			return
		}
		left := l.limit - l.now().Since(*last)
		if left <= 0 {
			expired(fmt.Errorf("%w for %s", ErrLease, l.limit))
			return
		}
		timer.Reset(left)
	}
}

// Replaced asks the coordinator whether another process has joined with m's instance id, and returns an error that wraps
// ErrFenced if so. It returns nil if not, or if the coordinator does not answer.
func Replaced(client sarama.Client, m Member) error {
	if m.ID == "" || m.InstanceID == "" || !errors.Is(heartbeat(client, m), sarama.ErrFencedInstancedId) {
		return nil
	}
	return fmt.Errorf("%w: group %s, instance %s", ErrFenced, m.Group, m.InstanceID)
}

func heartbeat(client sarama.Client, m Member) error {
	coordinator, err := client.Coordinator(m.Group)
	if err != nil {
		return err
	}
	req := &sarama.HeartbeatRequest{Version: 3, GroupId: m.Group, GenerationId: m.Generation, MemberId: m.ID}
	if m.InstanceID != "" {
		req.GroupInstanceId = &m.InstanceID
	}
	resp, err := coordinator.Heartbeat(req)
	if err != nil {
		_ = coordinator.Close()
		return err
	}
	if resp.Err != sarama.ErrNoError {
		return resp.Err
	}
	return nil
}
