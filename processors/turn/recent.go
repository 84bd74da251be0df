package turn

import (
	"bytes"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// recent caches the states of the sessions with the most recent events, as they were written, so that the next event need
// not decode the row and read its parts. A cached state is used only if the table's row is byte for byte the row that it
// was written as, because another instance, a crash or an operator may have changed the row since.
//
// Histories and other late fields that have parts are bounded separately, so that the history of a session in a turn does
// not evict the states of sessions that are between turns. recent is safe for concurrent use.
type recent struct {
	mu        sync.Mutex
	states    *simplelru.LRU[string, *written]
	histories *simplelru.LRU[string, *written] // states with cached late fields that have parts
	size      int
	apart     int // bytes of those late fields
}

// written is a state and the row that it was written as. The zero value is an entry whose state was taken.
type written struct {
	row   []byte
	state *State
	asked asked
	whole wholes // the full values of its large fields; a late field that has parts may be missing
	apart int    // bytes of the late fields in whole that have parts
	size  int    // bytes of the rest, without recentEntry
}

const (
	// recentSize bounds the cached states of a group, in bytes. Larger rows and inputs than recentRow are not cached.
	recentSize = 16 << 20
	recentRow  = 16 << 10
	// recentEntry is the measured overhead of a state beside its bytes: structs, pointers, its cache entry. recentPart is
	// that of a reference to a part.
	recentEntry = 2 << 10
	recentPart  = 56
	// recentHistories bounds the histories, in bytes.
	recentHistories = 16 << 20
	// recentSessions is never reached, because the sizes are bounded.
	recentSessions = 1 << 20
)

func newRecent() *recent {
	r := &recent{}
	// NewLRU fails only for a size of 0.
	r.histories, _ = simplelru.NewLRU[string, *written](recentSessions, nil)
	r.states, _ = simplelru.NewLRU(recentSessions, func(session string, w *written) {
		r.histories.Remove(session)
		r.replace(w, written{})
		r.size -= recentEntry
	})
	return r
}

// measure returns the memory of a state in bytes: the row, its decoded fields, the large fields with their spare capacity,
// and the input. The inline end of a large field shares the field's memory and is counted once. Late fields that have
// parts are not included.
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

// has reports whether the state of a session is cached and belongs to this row.
func (r *recent) has(session string, row []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, ok := r.states.Get(session)
	return ok && w.isOf(row)
}

func (w *written) isOf(row []byte) bool { return w.state != nil && bytes.Equal(w.row, row) }

// take removes the state of a session from the cache and returns it. It reports false if there is none or it does not
// belong to this row.
func (r *recent) take(session string, row []byte) (written, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, ok := r.states.Get(session)
	if !ok {
		return written{}, false
	}
	taken := *w
	r.replace(w, written{}) // the entry stays, because usually keep follows immediately
	return taken, taken.isOf(row)
}

// keep caches a state and takes ownership of it. The state must not share memory with the event that changed it, because a
// slice could keep a response of megabytes in memory. Only the inline end of a field that has parts may share the memory
// of the full field.
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
