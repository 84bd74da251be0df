package share

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
)

// session is the share session of this member with one broker. The broker numbers the requests of a session, so one is in
// flight at a time; a fetch that waits for records therefore delays verdicts and renewals, and waits only briefly.
type session struct {
	*member
	broker int32

	want map[partition]string // topic name by partition that the broker leads; guarded by member.mu
	wake chan struct{}

	// Of the goroutine that serves the session:
	epoch int32              // number of the next request; 0: there is no session
	sent  map[partition]bool // partitions of the broker's session
	empty []place            // acquired offsets that have no record
	ahead time.Time          // of the last fetch without a free slot
}

const (
	// busyWait is how long a fetch waits for records while calls of this process are running. Their verdicts wait too, and a
	// crash before a verdict is sent repeats the call.
	busyWait = 25 * time.Millisecond
	idleWait = 500 * time.Millisecond
	// aheadEvery is how often records are fetched that have to wait. Members with free slots get them first.
	aheadEvery = 200 * time.Millisecond
	// aheadRecords is how many at least.
	aheadRecords = 32
	// maxBytes bounds the response of a fetch. At least one record is returned, however large.
	maxBytes = 16 << 20
)

// errSession says that the broker has no session for the request's number. A new one is opened.
var errSession = errors.New("the share session has ended")

// step is what a session does next.
type step struct {
	acks  []*held
	slots int // how many records to fetch; reserved
	wait  time.Duration
	over  bool
}

// serve sends requests until the worker stops and no record is held, or until ctx ends.
func (s *session) serve(ctx context.Context) {
	wait := newBackoff()
	for {
		next := s.next(ctx)
		var err error
		switch {
		case next.over:
			s.close(ctx)
			return
		case s.epoch == 0:
			s.giveBack(next)
			err = s.open(ctx)
		case len(next.acks) > 0 || len(s.empty) > 0:
			s.giveBackSlots(next.slots)
			err = s.acknowledge(ctx, next.acks)
		default:
			err = s.fetch(ctx, next.slots, next.wait)
		}
		switch {
		case err == nil:
			wait.reset()
		case ctx.Err() != nil:
		case errors.Is(err, errSession):
			s.reset()
			wait.sleep(ctx)
		default:
			s.reset()
			s.report(fmt.Sprintf("share session with broker %d", s.broker), err)
			s.lookAgain()
			wait.sleep(ctx)
		}
	}
}

// reset forgets the broker's session. Its records stay held: in the next session the broker tells whether they still belong
// to this member.
func (s *session) reset() { s.epoch, s.sent = 0, map[partition]bool{} }

// next blocks until there is something to send.
func (s *session) next(ctx context.Context) step {
	for {
		n, at := s.work(time.Now())
		if n.over || len(n.acks) > 0 || n.slots > 0 || len(s.empty) > 0 && s.epoch > 0 {
			return n
		}
		timer := time.NewTimer(time.Until(at))
		select {
		case <-s.wake:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return step{over: true}
		}
		timer.Stop()
	}
}

// work returns what is to be sent now. If there is nothing, at is when the next renewal is due.
func (s *session) work(now time.Time) (n step, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at = now.Add(time.Hour)
	n.wait = idleWait
	mine := 0
	for _, h := range s.held {
		n.wait = busyWait
		if h.session != s {
			continue
		}
		mine++
		switch due := h.due(); {
		case h.sending:
		case !due.After(now):
			n.acks = append(n.acks, h)
		case due.Before(at):
			at = due
		}
	}
	n.acks = separate(n.acks)
	for _, h := range n.acks {
		h.sending = true
	}
	switch {
	case len(n.acks) > 0:
	case s.stopping:
		n.over = mine == 0
	case s.space <= 0 || len(s.want) == 0 && len(s.sent) == 0:
	case s.free > 0:
		// Every broker's session gets a part of the free slots, so that none of them waits for the fetches of the others.
		n.slots = max(1, min(s.free, s.space)/len(s.sessions))
	case s.config.Crowded():
		if next := s.ahead.Add(aheadEvery); next.After(now) {
			at = earlier(at, next)
		} else {
			n.slots, n.wait, s.ahead = max(1, min(max(s.config.Concurrency, aheadRecords), s.space)/len(s.sessions)), 0, now
		}
	}
	s.free, s.space = s.free-n.slots, s.space-n.slots
	return n, at
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// separate leaves out records of a partition that must wait because another one is sent alone.
func separate(acks []*held) []*held {
	alone := map[partition]*held{}
	for _, h := range acks {
		if h.alone {
			alone[h.partition] = h
		}
	}
	if len(alone) == 0 {
		return acks
	}
	kept := acks[:0]
	for _, h := range acks {
		if a := alone[h.partition]; a == nil || a == h {
			kept = append(kept, h)
		}
	}
	return kept
}

func (s *session) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// giveBack undoes what next has reserved.
func (s *session) giveBack(n step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range n.acks {
		h.sending = false
	}
	s.free, s.space = s.free+n.slots, s.space+n.slots
}

func (s *session) giveBackSlots(slots int) { s.giveBack(step{slots: slots}) }

// reacquireWait is how long a new session waits before it renews the records of the one before. A broker that has restarted
// or lost the connection has released them and rejects renewals, but the first fetches can acquire them again for the calls
// that are running.
const reacquireWait = time.Second

// open begins a session without partitions. The request that begins a session cannot have acknowledgements, and one with
// partitions would acquire records at a time when no slots are reserved.
func (s *session) open(ctx context.Context) error {
	if _, _, err := s.ask(ctx, kmsg.NewPtrShareFetchRequest(), 0); err != nil {
		return err
	}
	renew := time.Now().Add(min(reacquireWait, s.config.Lock/3))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.held {
		if h.session == s && !h.done {
			h.renew = renew
		}
	}
	return nil
}

// close ends the broker's session, which releases what the broker believes this member to hold.
func (s *session) close(ctx context.Context) {
	if s.epoch == 0 {
		return
	}
	req := kmsg.NewPtrShareAcknowledgeRequest()
	req.GroupID, req.MemberID, req.ShareSessionEpoch = &s.config.Group, &s.id, -1
	if _, err := req.RequestWith(ctx, s.client.Broker(int(s.broker))); err != nil {
		s.logger.Warn("worker cannot end its share session; the broker ends it with the connection", zap.Error(err))
	}
}

// ask sends a fetch as the session's next request. It returns the response and when the request was sent.
func (s *session) ask(ctx context.Context, req *kmsg.ShareFetchRequest, wait time.Duration) (*kmsg.ShareFetchResponse, time.Time, error) {
	req.GroupID, req.MemberID, req.ShareSessionEpoch = &s.config.Group, &s.id, s.epoch
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = int32(wait.Milliseconds()), 1, maxBytes
	req.ShareAcquireMode = recordLimit
	sent := time.Now()
	resp, err := req.RequestWith(ctx, s.client.Broker(int(s.broker)))
	if err != nil {
		return nil, sent, err
	}
	return resp, sent, s.answered(resp.ErrorCode, resp.ErrorMessage)
}

// recordLimit is the mode of acquisition in which a fetch acquires at most MaxRecords records.
const recordLimit = 1

// answered counts a request of the session, or returns the error of its response.
func (s *session) answered(code int16, message *string) error {
	switch err := kerr.ErrorForCode(code); {
	case err == nil:
		if s.epoch++; s.epoch < 0 {
			s.epoch = 1
		}
		return nil
	case errors.Is(err, kerr.ShareSessionNotFound), errors.Is(err, kerr.InvalidShareSessionEpoch):
		return fmt.Errorf("%w: %w", errSession, err)
	case message != nil:
		return fmt.Errorf("%w: %s", err, *message)
	default:
		return err
	}
}
