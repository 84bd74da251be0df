package tableindex

import (
	"iter"
	"time"
)

// Announced are rows that an index has not read, although clients know from records or answers that they will exist. A request about
// such a row waits for it, instead of being told that it is unknown. Announced is bounded, and not safe for concurrent use: the lock
// of the index guards it.
type Announced struct {
	limit int
	rows  map[string]announcement
	moved chan struct{} // closed when a row is read; nil if no one waits
}

// announcement is a row that will be read. of says whose it is, so that only those wait who may know about it.
type announcement struct {
	of    string
	until time.Time
}

// NewAnnounced returns room for so many announcements. There are no more until some have expired.
func NewAnnounced(limit int) *Announced {
	return &Announced{limit: limit, rows: map[string]announcement{}}
}

// Add announces a row until it is read, or d has passed.
func (a *Announced) Add(id, of string, now time.Time, d time.Duration) {
	if len(a.rows) >= a.limit {
		for id, r := range a.rows {
			if !now.Before(r.until) {
				delete(a.rows, id)
			}
		}
	}
	if len(a.rows) < a.limit {
		a.rows[id] = announcement{of, now.Add(d)}
	}
}

// Of returns whose a row is. ok is false if it is not announced.
func (a *Announced) Of(id string, now time.Time) (of string, ok bool) {
	r, ok := a.rows[id]
	return r.of, ok && now.Before(r.until)
}

// All returns the announced rows and whose they are.
func (a *Announced) All(now time.Time) iter.Seq2[string, string] {
	return func(yield func(id, of string) bool) {
		for id, r := range a.rows {
			if now.Before(r.until) && !yield(id, r.of) {
				return
			}
		}
	}
}

// Read notes that a row was read, and wakes those that wait for Moved.
func (a *Announced) Read(id string) {
	delete(a.rows, id)
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
