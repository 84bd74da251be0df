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
	states *simplelru.LRU[string, *written]
	size   int
}

// written is a state and the row that it was written as. The zero value is one that was taken.
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
	r.states, _ = simplelru.NewLRU(1<<20, func(_ string, w *written) { r.size -= w.size() }) // its only error is a size of 0
	return r
}

func (w *written) size() int {
	size := 2*len(w.row) + recentEntry
	for _, b := range w.whole {
		size += cap(b)
	}
	return size
}

// has reports whether the state of a session is here and is the one of this row.
func (r *recent) has(session string, row []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, ok := r.states.Get(session)
	return ok && w.isOf(row)
}

func (w *written) isOf(row []byte) bool { return w.state != nil && bytes.Equal(w.row, row) }

// take gives the state of a session away, if it is the one of this row.
func (r *recent) take(session string, row []byte) (written, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, ok := r.states.Get(session)
	if !ok {
		return written{}, false
	}
	taken := *w
	r.replace(w, written{}) // its place stays: mostly it is kept again at once
	return taken, taken.isOf(row)
}

// keep takes a state over. The state has memory of its own, no larger than what it says: nothing in it is a part of the
// event that changed it, which may have come in a response of megabytes.
func (r *recent) keep(session string, w written) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(w.row) > recentRow {
		r.states.Remove(session)
		return
	}
	if at, ok := r.states.Get(session); ok {
		r.replace(at, w)
	} else {
		at = &written{}
		r.states.Add(session, at)
		r.size += at.size()
		r.replace(at, w)
	}
	for r.size > recentSize {
		r.states.RemoveOldest()
	}
}

func (r *recent) replace(at *written, w written) {
	r.size += w.size() - at.size()
	*at = w
}
