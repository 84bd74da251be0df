package tableindex

import (
	"iter"
	"maps"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Announced are rows that an index has not read, although clients know from records or answers that they will exist. A request about
// such a row waits for it, instead of being told that it is unknown. Announced is bounded, and not safe for concurrent use: the lock
// of the index guards it.
type Announced struct {
	lasts time.Duration
	rows  *simplelru.LRU[string, announcement] // the oldest announcement is the first to expire
	byOf  map[string]map[string]struct{}
	moved chan struct{} // closed when a row is read; nil if no one waits
}

// announcement is a row that will be read. of says whose it is, so that only those wait who may know about it.
type announcement struct {
	of    string
	until time.Time
}

// NewAnnounced returns room for so many announcements, each of which expires after lasts. When there are more, the oldest is dropped.
func NewAnnounced(limit int, lasts time.Duration) *Announced {
	a := &Announced{lasts: lasts, byOf: map[string]map[string]struct{}{}}
	a.rows, _ = simplelru.NewLRU(limit, func(id string, r announcement) { // its only error is a size of 0
		delete(a.byOf[r.of], id)
		if len(a.byOf[r.of]) == 0 {
			delete(a.byOf, r.of)
		}
	})
	return a
}

// Add announces a row until it is read or the announcement expires. A row that was announced already expires later.
func (a *Announced) Add(id, of string, now time.Time) {
	for {
		if _, oldest, ok := a.rows.GetOldest(); !ok || now.Before(oldest.until) {
			break
		}
		a.rows.RemoveOldest()
	}
	a.rows.Remove(id)
	a.rows.Add(id, announcement{of, now.Add(a.lasts)})
	if a.byOf[of] == nil {
		a.byOf[of] = map[string]struct{}{}
	}
	a.byOf[of][id] = struct{}{}
}

// Of returns whose a row is. ok is false if it is not announced.
func (a *Announced) Of(id string, now time.Time) (of string, ok bool) {
	r, ok := a.rows.Peek(id)
	return r.of, ok && now.Before(r.until)
}

// All returns the announced rows and whose they are.
func (a *Announced) All(now time.Time) iter.Seq2[string, string] {
	return func(yield func(id, of string) bool) {
		for _, id := range a.rows.Keys() {
			if of, ok := a.Of(id, now); ok && !yield(id, of) {
				return
			}
		}
	}
}

// OnlyOf returns the announced rows of one, also those that have expired. Read may be called for them meanwhile.
func (a *Announced) OnlyOf(of string) iter.Seq[string] { return maps.Keys(a.byOf[of]) }

// Read notes that a row was read or does not come into being, and wakes those that wait for Moved.
func (a *Announced) Read(id string) {
	a.rows.Remove(id)
	if a.moved != nil {
		close(a.moved)
		a.moved = nil
	}
}

// Moved returns a channel that is closed when a row is read, announced or not.
func (a *Announced) Moved() <-chan struct{} {
	if a.moved == nil {
		a.moved = make(chan struct{})
	}
	return a.moved
}

// Awaited reports whether Moved was called after the last row was read.
func (a *Announced) Awaited() bool { return a.moved != nil }
