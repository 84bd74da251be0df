package turn

import (
	"bytes"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
)

// stateCache caches the states of the sessions with the most recent events, as cachedState, so that the next event need not
// decode the row and read its parts. A cached state is used only if the table's row is byte for byte the row that
// it was written as, because another instance, a crash or an operator may have changed the row since.
//
// Histories and other lazy fields that have parts are bounded separately, so that the history of a session in a turn does
// not evict the states of sessions that are between turns. A stateCache is safe for concurrent use.
type stateCache struct {
	mu        sync.Mutex
	states    *simplelru.LRU[string, *cachedState]
	histories *simplelru.LRU[string, *cachedState] // states with cached lazy fields that have parts
	size      int
	lazySize  int // bytes of those lazy fields
}

// cachedState is a state and the row that it was written as. The zero value is an entry whose state was taken.
type cachedState struct {
	row      []byte
	state    *turnrow.State
	full     fullValues // the full values of its large fields; a lazy field that has parts may be missing
	lazySize int        // bytes of the lazy fields in full that have parts
	size     int        // bytes of the rest, without cacheEntry
}

const (
	// cacheSize bounds the cached states of a group, in bytes. Larger rows than cacheRow are not cached.
	cacheSize = 16 << 20
	cacheRow  = 16 << 10
	// cacheEntry is the measured overhead of a state beside its bytes: structs, pointers, its cache entry. cachePart is
	// that of a reference to a part.
	cacheEntry = 2 << 10
	cachePart  = 56
	// cacheHistories bounds the histories, in bytes.
	cacheHistories = 16 << 20
	// cacheSessions is never reached, because the sizes are bounded.
	cacheSessions = 1 << 20
)

func newStateCache() *stateCache {
	c := &stateCache{}
	// NewLRU fails only for a size of 0.
	c.histories, _ = simplelru.NewLRU[string, *cachedState](cacheSessions, nil)
	c.states, _ = simplelru.NewLRU(cacheSessions, func(session string, s *cachedState) {
		c.histories.Remove(session)
		c.replace(s, cachedState{})
		c.size -= cacheEntry
	})
	return c
}

// measure returns the memory of a state in bytes: the row, its decoded fields, and the large fields with their spare
// capacity. The inline end of a large field shares the field's memory and is counted once. Lazy fields that have parts are
// not included.
func (s *cachedState) measure() int {
	size := 2 * len(s.row)
	for i, f := range stateLargeFields(s.state) {
		if f.absent() {
			continue
		}
		if s.full[i] != nil && !(f.lazy && f.hasParts()) {
			size += cap(s.full[i]) - len(*f.inline)
		}
		size += cachePart * len(*f.parts)
	}
	return size
}

// has reports whether the state of a session is cached and belongs to this row.
func (c *stateCache) has(session string, row []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.states.Get(session)
	return ok && s.isOf(row)
}

func (s *cachedState) isOf(row []byte) bool { return s.state != nil && bytes.Equal(s.row, row) }

// take removes the state of a session from the cache and returns it. It reports false if there is none or it does not
// belong to this row.
func (c *stateCache) take(session string, row []byte) (cachedState, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.states.Get(session)
	if !ok {
		return cachedState{}, false
	}
	taken := *s
	c.replace(s, cachedState{}) // the entry stays, because usually put follows immediately
	return taken, taken.isOf(row)
}

// keep caches the state of an encoded outcome and takes ownership of it. The state must not share memory with the event
// that changed it, because a slice could keep a response of megabytes in memory. Only the inline end of a field that has
// parts may share the memory of the full field.
func (c *stateCache) keep(session string, out outcome) {
	if out.State != nil {
		c.put(session, cachedState{row: out.row, state: out.State, full: out.full})
	}
}

func (c *stateCache) put(session string, s cachedState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(s.row) > cacheRow {
		c.states.Remove(session)
		return
	}
	at, ok := c.states.Get(session)
	if !ok {
		at = &cachedState{}
		c.states.Add(session, at)
		c.size += cacheEntry
	}
	for i, f := range stateLargeFields(s.state) {
		if f.lazy && f.hasParts() {
			s.lazySize += cap(s.full[i])
		}
	}
	s.size = s.measure()
	if c.replace(at, s); s.lazySize > 0 {
		c.histories.Add(session, at)
	}
	for c.lazySize > cacheHistories {
		_, oldest, _ := c.histories.RemoveOldest()
		c.dropHistory(oldest)
	}
	for c.size > cacheSize {
		c.states.RemoveOldest()
	}
}

func (c *stateCache) replace(at *cachedState, s cachedState) {
	c.size += s.size - at.size
	c.lazySize += s.lazySize - at.lazySize
	*at = s
}

func (c *stateCache) dropHistory(s *cachedState) {
	if s.lazySize == 0 { // it was taken
		return
	}
	less := *s
	less.lazySize = 0
	for i, f := range stateLargeFields(less.state) {
		if f.lazy && f.hasParts() {
			less.full[i], *f.inline = nil, bytes.Clone(*f.inline)
		}
	}
	c.replace(s, less)
}
