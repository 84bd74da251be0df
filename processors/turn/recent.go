package turn

import (
	"bytes"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// recent keeps the states of the sessions that had an event last, as they were written, so that the next event need not
// decode the row again and read its parts. What it has counts only where the table's row is byte for byte the one that
// was written with it: another instance, a crash or an operator may have been there in between.
type recent struct {
	mu     sync.Mutex
	states *simplelru.LRU[string, written]
	size   int
}

// written is a state and the row that it was written as.
type written struct {
	row   []byte
	state *State
	whole [4][]byte // its big fields but the history, whole
}

const (
	// recentSize bounds the states of a group, in bytes; recentRow the rows worth keeping, and the events.
	recentSize = 16 << 20
	recentRow  = 16 << 10
	// recentEntry is what a state costs beside its bytes, which it has about twice.
	recentEntry = 2 << 10
)

func newRecent() *recent {
	r := &recent{}
	r.states, _ = simplelru.NewLRU(1<<20, func(_ string, w written) { r.size -= w.size() }) // its only error is a size of 0
	return r
}

func (w written) size() int {
	size := 2*len(w.row) + recentEntry
	for _, b := range w.whole {
		size += cap(b)
	}
	return size
}

// take gives the state of a session away, if it is the one of this row.
func (r *recent) take(session string, row []byte) (written, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, ok := r.states.Get(session)
	if !ok {
		return written{}, false
	}
	r.states.Remove(session)
	return w, bytes.Equal(w.row, row)
}

// keep takes a state over. It may not share memory with the event that changed it, which came in a response of megabytes.
func (r *recent) keep(session string, w written) {
	if len(w.row) > recentRow {
		return
	}
	w.state.own()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.states.Remove(session)
	r.states.Add(session, w)
	for r.size += w.size(); r.size > recentSize; {
		r.states.RemoveOldest()
	}
}

// own copies the fields that may be parts of an event.
func (s *State) own() {
	s.History = bytes.Clone(s.History)
	for _, w := range s.Waiting {
		w.own()
	}
	for _, r := range s.Routes {
		r.own()
	}
	t := s.Turn
	if t == nil {
		return
	}
	t.Tail = bytes.Clone(t.Tail)
	t.Message.own()
	for _, c := range t.Calls {
		if c.Result != nil {
			c.Result.Result = bytes.Clone(c.Result.Result)
		}
	}
	for _, h := range t.Held {
		h.Value = bytes.Clone(h.Value)
		for _, header := range h.Headers {
			header.Value = bytes.Clone(header.Value)
		}
	}
}

func (a *Accepted) own() {
	if a != nil {
		a.Input = bytes.Clone(a.Input)
		a.Route.own()
	}
}

func (r *ReplyRoute) own() {
	if r != nil {
		r.ReplyTo = bytes.Clone(r.ReplyTo)
	}
}
