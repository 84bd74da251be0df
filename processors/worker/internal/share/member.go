package share

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors/worker/internal/source"
)

// member is this process in the share group. Its heartbeats keep the membership; a session per broker fetches the partitions
// that the broker leads.
type member struct {
	*Source
	client *kgo.Client
	handle source.Handle
	id     string
	limit  int // deliveries of a record

	refresh  chan struct{} // leaders have changed
	handlers sync.WaitGroup
	serving  sync.WaitGroup // sessions, and the measurement of the lag

	mu       sync.Mutex
	held     map[place]*held
	free     int  // slots without a record; a record that waits has none. Negative if records were acquired without a slot
	space    int  // records that may be acquired, slot or not
	stopping bool // no record is fetched any more
	sessions map[int32]*session
}

// serve is a member from its first heartbeat until it has left.
func (m *member) serve(ctx context.Context) error {
	alive, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	over := make(chan error, 1)
	go func() { over <- m.heartbeats(alive) }()
	measuring, stopMeasuring := context.WithCancel(ctx)
	defer stopMeasuring()
	m.serving.Go(func() { m.measure(measuring) })
	var err error
	select {
	case <-ctx.Done():
	case err = <-over:
	}
	m.mu.Lock()
	m.stopping = true
	m.wakeAll()
	m.mu.Unlock()
	m.joined(false)
	stopMeasuring()
	m.handlers.Wait() // membership and locks are kept meanwhile
	m.mu.Lock()
	m.wakeAll()
	m.mu.Unlock()
	abort := time.AfterFunc(flushLimit, end)
	defer abort.Stop()
	m.serving.Wait()
	if err == nil {
		m.leave(alive)
		end()
		<-over
	}
	return err
}

// heartbeats keeps the membership until ctx ends. It returns an error only if no broker will ever accept the member.
func (m *member) heartbeats(ctx context.Context) error {
	var (
		epoch    int32
		assigned bool   // the coordinator has initialized the group's partitions
		full     = true // send the subscription, because the coordinator may not know it
		wait     = newBackoff()
	)
	for ctx.Err() == nil {
		resp, err := m.heartbeat(ctx, epoch, full)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, kerr.UnsupportedVersion):
			return fmt.Errorf("worker: share group %s: %w", m.config.Group, err)
		case err != nil:
			// A member that the coordinator does not know joins again. Its records may still be its own: renewals will tell.
			if fenced(err) {
				epoch = 0
			}
			full = true
			m.report("heartbeat", err)
			wait.sleep(ctx)
			continue
		}
		wait.reset()
		epoch, full = resp.MemberEpoch, false
		assigned = assigned || resp.Assignment != nil && len(resp.Assignment.TopicPartitions) > 0
		interval := time.Duration(resp.HeartbeatIntervalMillis) * time.Millisecond
		if !assigned {
			interval = min(interval, eagerInterval)
		}
		m.follow(ctx, assigned, interval)
	}
	return nil
}

const (
	eagerInterval = 300 * time.Millisecond
	// refreshEvery bounds how often changed leaders are asked for.
	refreshEvery = 100 * time.Millisecond
)

// follow routes the partitions to the sessions of their brokers, now and whenever a session reports that leaders have
// changed, until the next heartbeat is due.
func (m *member) follow(ctx context.Context, assigned bool, interval time.Duration) {
	next := time.NewTimer(interval)
	defer next.Stop()
	for {
		if assigned {
			if err := m.route(ctx); err != nil && ctx.Err() == nil {
				m.report("metadata", err)
				m.lookAgain()
			}
		}
		pause := time.NewTimer(refreshEvery)
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
		pause.Stop()
		select {
		case <-m.refresh:
		case <-next.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (m *member) lookAgain() {
	select {
	case m.refresh <- struct{}{}:
	default:
	}
}

func fenced(err error) bool {
	return errors.Is(err, kerr.UnknownMemberID) || errors.Is(err, kerr.FencedMemberEpoch) || errors.Is(err, kerr.GroupIDNotFound)
}

func (m *member) heartbeat(ctx context.Context, epoch int32, full bool) (*kmsg.ShareGroupHeartbeatResponse, error) {
	req := kmsg.NewPtrShareGroupHeartbeatRequest()
	req.GroupID, req.MemberID, req.MemberEpoch = m.config.Group, m.id, epoch
	if full {
		req.SubscribedTopicNames = m.config.Topics
	}
	resp, err := req.RequestWith(ctx, m.client)
	if err != nil {
		return nil, err
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		if resp.ErrorMessage != nil {
			err = fmt.Errorf("%w: %s", err, *resp.ErrorMessage)
		}
		return nil, err
	}
	return resp, nil
}

func (m *member) leave(ctx context.Context) {
	if _, err := m.heartbeat(ctx, -1, false); err != nil && !fenced(err) {
		m.logger.Warn("worker cannot leave its share group; the broker removes it after its session timeout", zap.Error(err))
	}
}

// route tells each broker's session which partitions the broker leads. A member fetches all partitions, not only those that
// the coordinator assigned to it: assignments of a share group are advice that spreads members over partitions, and are not
// enforced. With them, the records of a killed process would wait for the end of its membership, 45 s by default, if no
// other member had its partitions, and free slots would not help with the backlog of another member.
func (m *member) route(ctx context.Context) error {
	topics, err := topicsOf(ctx, m.client, m.config.Topics)
	if err != nil {
		return err
	}
	wants := map[int32]map[partition]string{}
	missing := false
	for id, t := range topics {
		for p, leader := range t.leaders {
			if leader < 0 {
				missing = true
				continue
			}
			if wants[leader] == nil {
				wants[leader] = map[partition]string{}
			}
			wants[leader][partition{id, p}] = t.name
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for broker := range wants {
		if m.sessions[broker] == nil && !m.stopping {
			s := &session{member: m, broker: broker, sent: map[partition]bool{}, wake: make(chan struct{}, 1)}
			m.sessions[broker] = s
			m.serving.Go(func() { s.serve(ctx) })
		}
	}
	for broker, s := range m.sessions {
		s.want = wants[broker]
	}
	m.wakeAll()
	if missing {
		return errors.New("worker: a partition has no leader")
	}
	m.joined(!m.stopping)
	return nil
}

// wakeAll lets all sessions look for work. m.mu is held.
func (m *member) wakeAll() {
	for _, s := range m.sessions {
		s.signal()
	}
}

func (m *member) report(what string, err error) {
	m.failed(fmt.Errorf("worker: share group %s: %s: %w", m.config.Group, what, err))
	m.requests.FailedAs(what+": "+err.Error(), zap.String("request", what), zap.Error(err))
}
