package websocket

import (
	"context"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/socket"
)

// The reasons in "resumed" frames why a client does not receive what it missed.
const (
	reasonUnknown = "last_event_id is none of this session"
	reasonLongAgo = "the last event is too long ago"
	reasonTooMuch = "too much was missed"
	reasonAway    = "the topics cannot be read now"
	reasonTooLong = "reading it back takes too long"
)

const (
	topicReadTimeout = 15 * time.Second
	maxTopicReads    = 8           // running at the same time
	feedLag          = time.Minute // how far the timestamps of one feed may lag behind those of another
	readyTimeout     = 5 * time.Second
)

// follower is the part of processors.Follower that a topicRead needs.
type follower interface {
	Ready() <-chan struct{}
	Replay(ctx context.Context, topic, key string, since time.Time,
		take func(context.Context, processors.Inbound) (more bool)) (next int64, err error)
}

// resume sends a client the frames that it missed and a "resumed" frame, then lets it receive new frames.
func (s *Server) resume(ctx context.Context, c *client, sub subscription) {
	var end replayEnd
	reason := ""
	missed, ok := s.hub.subscribeHeld(c, sub.session, sub.last)
	if !ok {
		missed, end, reason = s.readMissed(ctx, c.owner, sub)
	}
	if ctx.Err() != nil {
		return
	}
	for _, frame := range missed {
		if !c.Wait(ctx.Done(), socket.Frame{Text: frame.text}) {
			return
		}
	}
	if c.Wait(ctx.Done(), socket.Frame{Text: resumed(sub.session, len(missed), reason)}) {
		s.hub.release(c, end, ctx.Done())
	}
}

// readMissed reads the frames that a client of a caller missed from the topics. end is the position up to which it read. If it fails, it
// returns the reason.
func (s *Server) readMissed(ctx context.Context, caller string, sub subscription) (missed []*frame, end replayEnd, reason string) {
	unsigned, signed := s.signer.verify(sub.session, sub.last)
	last, ok := parseEventID(unsigned)
	now := s.config.Clock.Now()
	switch {
	case !signed || !ok || last.session != digestOf(sub.session):
		return nil, replayEnd{}, reasonUnknown
	case now.Sub(time.UnixMilli(last.at)) > s.config.Replay.MaxAge:
		return nil, replayEnd{}, reasonLongAgo
	}
	ctx, cancel := context.WithTimeout(ctx, topicReadTimeout)
	defer cancel()
	if s.reading.Acquire(ctx, caller) != nil {
		return nil, replayEnd{}, reasonTooLong
	}
	defer s.reading.Release()
	most := socket.Limits{Frames: s.config.Replay.Frames, Bytes: s.config.Replay.Bytes}
	r := &topicRead{sub: sub, signer: s.signer, last: last, limits: most, cancel: cancel}
	r.end.at = now
	var reading sync.WaitGroup
	for feed := range feedCount {
		if feed != feedLatency { // its keys are tools, not sessions
			reading.Go(func() { r.read(ctx, s.follower(feed), feed, s.names[feed]) })
		}
	}
	reading.Wait()
	if r.reason != "" {
		return nil, replayEnd{}, r.reason
	}
	return r.frames(), r.end, ""
}
