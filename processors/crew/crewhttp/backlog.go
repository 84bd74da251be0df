package crewhttp

import (
	"slices"
	"sync"

	ws "github.com/coder/websocket"
	"github.com/go-json-experiment/json"
)

// maxBacklog is how many frames of the maximum size (Config.FrameLimit) a backlog holds. Smaller frames may be more.
const maxBacklog = 16

const reasonBacklog = "too many requests: read what you asked for before you ask for more"

// backlog holds the frames of a client that select what it gets, in their order, while the first one waits until the client has
// read a replay or asks less often. The goroutine that reads the socket does not wait, because it also reads pongs and answers to
// permission requests.
type backlog struct {
	running sync.WaitGroup

	mu     sync.Mutex
	busy   bool // a goroutine carries out frames
	frames [][]byte
	bytes  int64 // of frames
}

// replays reports whether a frame is answered with a replay. All other clients wait while the index makes one.
func (w wish) replays() bool {
	return w.Type == "resume" || w.Type == "subscribe-project" && w.ProjectID != ""
}

// selections are the types of frames that change or repeat what the client gets, so that their order matters.
var selections = []string{"subscribe", "unsubscribe", "subscribe-project", "resume"}

// postpone adds a frame to the backlog if it must wait. It returns false if the caller can carry it out now. It disconnects a
// client whose backlog is full.
func (s *session) postpone(w wish, frame []byte) bool {
	if !slices.Contains(selections, w.Type) {
		return false
	}
	b := &s.backlog
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.busy {
		if !w.replays() || s.client.replaying.Load() == 0 && s.heavy.AllowN(s.handler.config.Clock.Now(), 1) {
			return false
		}
		b.busy = true
		b.running.Go(s.carryOutBacklog)
	}
	bytes := b.bytes + int64(len(frame))
	if (bytes-1)/maxBacklog >= s.handler.config.FrameLimit { // bytes > maxBacklog * inbound, which may overflow
		s.client.End(ws.StatusTryAgainLater, reasonBacklog)
		return true
	}
	b.frames, b.bytes = append(b.frames, slices.Clone(frame)), bytes // without the spare capacity of the read buffer
	return true
}

// take removes the first frame. It returns nil if there is none: then the caller does not carry out further frames.
func (b *backlog) take() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.frames) == 0 {
		b.busy, b.frames = false, nil
		return nil
	}
	frame := b.frames[0]
	b.frames[0] = nil
	b.frames, b.bytes = b.frames[1:], b.bytes-int64(len(frame))
	return frame
}

// drop removes all frames.
func (b *backlog) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy, b.frames, b.bytes = false, nil, 0
}

// carryOutBacklog carries out the frames of the backlog until it is empty, or drops them when the client ends.
func (s *session) carryOutBacklog() {
	for frame := s.backlog.take(); frame != nil; frame = s.backlog.take() {
		var w wish
		_ = json.Unmarshal(frame, &w) // receive has checked it
		if w.replays() {
			s.slow()
		}
		select {
		case <-s.client.Ending:
			s.backlog.drop()
			return
		default:
			s.carryOut(w)
		}
	}
}

// slow waits until the client has read the replay that it asked for before, so that at most one waits for it. It also makes a
// client wait that asks for replays too often. It returns early when the client ends.
func (s *session) slow() {
	s.client.awaitReplay()
	now := s.handler.config.Clock.Now()
	wait := s.heavy.ReserveN(now, 1).DelayFrom(now)
	if wait <= 0 {
		return
	}
	timer := s.handler.config.Clock.NewTicker(min(wait, maxSlow))
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-s.client.Ending:
	}
}
