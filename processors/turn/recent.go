package turn

import (
	"bytes"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// recent keeps the states of the sessions that had an event last, as they were written, so that the next event need not
// decode the row again and read its parts. What it has counts only where the table's row is byte for byte the one that
// was written with it: another instance, a crash or an operator may have been there in between.
//
// Histories that stand apart, and what else is big and loaded late, have room of their own: a session in a turn, whose
// history is wanted again at once, takes none of the states of those that are between two turns.
type recent struct {
	mu        sync.Mutex
	states    *simplelru.LRU[string, *written]
	histories *simplelru.LRU[string, *written] // of states that know what stands apart late
	size      int
	apart     int // bytes of that
}

// written is a state and the row that it was written as. The zero value is one that was taken.
type written struct {
	row   []byte
	state *State
	asked asked
	whole wholes // its big fields, whole; a late one that stands apart may be missing
	apart int    // bytes of the late ones that stand apart and are here
	size  int    // bytes of the rest, but for recentEntry
}

const (
	// recentSize bounds the states of a group, in bytes; recentRow the rows and inputs worth keeping.
	recentSize = 16 << 20
	recentRow  = 16 << 10
	// recentEntry is what a state costs beside its bytes: structs, pointers, its place here (measured); recentPart is
	// what the name of a part does.
	recentEntry = 2 << 10
	recentPart  = 56
	// recentHistories bounds the histories, in bytes.
	recentHistories = 16 << 20
	// recentSessions is out of reach: the bounds are sizes.
	recentSessions = 1 << 20
)

func newRecent() *recent {
	r := &recent{}
	// The only error is that of a size of 0.
	r.histories, _ = simplelru.NewLRU[string, *written](recentSessions, nil)
	r.states, _ = simplelru.NewLRU(recentSessions, func(session string, w *written) {
		r.histories.Remove(session)
		r.replace(w, written{})
		r.size -= recentEntry
	})
	return r
}

// measure is what a state takes: its row, what of the row was decoded, its big fields with the room at their ends, and
// the input. The ends of the big fields, which are in the row, are no memory of their own in the state. What is late and
// stands apart is not in it.
func (w *written) measure() int {
	size := 2*len(w.row) + cap(w.asked.input)
	for i, f := range w.state.bigFields() {
		if f.none() {
			continue
		}
		if w.whole[i] != nil && !(f.late && f.apart()) {
			size += cap(w.whole[i]) - len(*f.inline)
		}
		size += recentPart * len(*f.parts)
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
// event that changed it, which may have come in a response of megabytes. Only the end of what stands apart is a part
// of the whole.
func (r *recent) keep(session string, w written) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(w.row) > recentRow {
		r.states.Remove(session)
		return
	}
	if cap(w.asked.input) > recentRow {
		w.asked = asked{}
	}
	at, ok := r.states.Get(session)
	if !ok {
		at = &written{}
		r.states.Add(session, at)
		r.size += recentEntry
	}
	for i, f := range w.state.bigFields() {
		if f.late && f.apart() {
			w.apart += cap(w.whole[i])
		}
	}
	w.size = w.measure()
	if r.replace(at, w); w.apart > 0 {
		r.histories.Add(session, at)
	}
	for r.apart > recentHistories {
		_, oldest, _ := r.histories.RemoveOldest()
		r.forgetHistory(oldest)
	}
	for r.size > recentSize {
		r.states.RemoveOldest()
	}
}

func (r *recent) replace(at *written, w written) {
	r.size += w.size - at.size
	r.apart += w.apart - at.apart
	*at = w
}

func (r *recent) forgetHistory(w *written) {
	if w.apart == 0 { // it was taken
		return
	}
	less := *w
	less.apart = 0
	for i, f := range less.state.bigFields() {
		if f.late && f.apart() {
			less.whole[i], *f.inline = nil, bytes.Clone(*f.inline)
		}
	}
	r.replace(w, less)
}
