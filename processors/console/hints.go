package console

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

const (
	// hintEvery is the shortest time between two hints on a stream, and aliveEvery the longest between two writes.
	hintEvery  = time.Second
	aliveEvery = 15 * time.Second
	// streamsOfCaller and allStreams are how many streams of hints are open at the same time. Pages whose stream is refused poll.
	streamsOfCaller = 4
	allStreams      = 256
)

// hints tells pages that something has changed, and what it is about. Its methods are safe for concurrent use.
type hints struct {
	mu      sync.Mutex
	version map[string]uint64 // of what changed, by what it is about
	moved   chan struct{}     // closed at the next change
	streams map[string]int    // open streams by caller
	open    int
}

func newHints() *hints {
	return &hints{version: map[string]uint64{}, moved: make(chan struct{}), streams: map[string]int{}}
}

func (h *hints) changed(about ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range about {
		h.version[a]++
	}
	close(h.moved)
	h.moved = make(chan struct{})
}

// since returns what has changed since seen, which it updates, and a channel that is closed at the next change.
func (h *hints) since(seen map[string]uint64) (about []string, moved <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for a, v := range h.version {
		if seen[a] != v {
			seen[a] = v
			about = append(about, a)
		}
	}
	return about, h.moved
}

// enter counts a stream of a caller. It returns false if there are too many.
func (h *hints) enter(caller string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open >= allStreams || h.streams[caller] >= streamsOfCaller {
		return false
	}
	h.open++
	h.streams[caller]++
	return true
}

func (h *hints) leave(caller string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open--
	if h.streams[caller]--; h.streams[caller] == 0 {
		delete(h.streams, caller)
	}
}

// stream answers with hints as server-sent events, until the client disconnects, its credential ends, or the console stops. A hint
// says what has changed, not how: the page asks for itself again, and so passes the door again.
func (c *Console) stream(w http.ResponseWriter, v *entrance.Visit, r *http.Request) {
	if !c.hints.enter(v.Key()) {
		http.Error(w, "too many streams", http.StatusTooManyRequests)
		return
	}
	defer c.hints.leave(v.Key())
	wire := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	seen := map[string]uint64{}
	c.hints.since(seen)
	write := func(text string) bool {
		_ = wire.SetWriteDeadline(time.Now().Add(aliveEvery)) // fails if the writer has no deadlines
		_, err := fmt.Fprint(w, text)
		return err == nil && wire.Flush() == nil
	}
	if !write("retry: 2000\n\n") {
		return
	}
	alive := c.config.Clock.NewTicker(aliveEvery)
	defer alive.Stop()
	for {
		about, moved := c.hints.since(seen)
		if len(about) > 0 && !write("data: "+strings.Join(about, " ")+"\n\n") {
			return
		}
		select {
		case <-alive.C():
			if v.Caller.Ended(c.config.Clock.Now()) || !write(":\n\n") {
				return
			}
		case <-r.Context().Done():
			return
		case <-c.follower.follows.Ended:
			return
		case <-moved:
			pause := c.config.Clock.NewTicker(hintEvery)
			select {
			case <-pause.C():
			case <-r.Context().Done():
			case <-c.follower.follows.Ended:
			}
			pause.Stop()
		}
	}
}
