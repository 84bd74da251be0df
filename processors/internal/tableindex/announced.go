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
	// awaited are the channels of those that wait for a row, by its ID.
	awaited map[string]map[chan struct{}]struct{}
}

// announcement is a row that will be read. of says whose it is, so that only those wait who may know about it.
type announcement struct {
	of    string
	until time.Time
}

// NewAnnounced returns room for so many announcements, each of which expires after lasts. When there are more, the oldest is dropped.
func NewAnnounced(limit int, lasts time.Duration) *Announced {
	a := &Announced{lasts: lasts, byOf: map[string]map[string]struct{}{}, awaited: map[string]map[chan struct{}]struct{}{}}
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

// Read notes that a row was read or does not come into being, and wakes those that await it.
func (a *Announced) Read(id string) {
	a.rows.Remove(id)
	for c := range a.awaited[id] {
		select {
		case c <- struct{}{}:
		default: // it is awake
		}
	}
}

// Await sends to c, which has a capacity of 1, whenever one of the rows is read, announced or not, until forget is called.
func (a *Announced) Await(c chan struct{}, ids ...string) (forget func()) {
	for _, id := range ids {
		if a.awaited[id] == nil {
			a.awaited[id] = map[chan struct{}]struct{}{}
		}
		a.awaited[id][c] = struct{}{}
	}
	return func() {
		for _, id := range ids {
			delete(a.awaited[id], c)
			if len(a.awaited[id]) == 0 {
				delete(a.awaited, id)
			}
		}
	}
}

// Awaited reports whether a row is awaited.
func (a *Announced) Awaited() bool { return len(a.awaited) > 0 }
