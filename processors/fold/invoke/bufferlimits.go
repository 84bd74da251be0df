package invoke

import (
	"net/http"
	"slices"
	"time"

	"github.com/turntable-streams/turntable/processors/fold/folder"
)

var (
	errBusy  = &Error{Status: http.StatusServiceUnavailable, Code: "busy", Text: "too many turns are running"}
	errShare = &Error{
		Status: http.StatusTooManyRequests, Type: TypeUnknown, Code: "busy", Text: "too many turns of the caller or the session are running",
		RetryAfter: time.Second,
	}
	errLarge = &Error{Code: "too_large", Text: "the turn is too large to be kept"}
)

// enter adds a turn to the buffer and to b.runs. It evicts old turns if the buffer is full.
func (b *Buffered) enter(rec *recording) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget()
	switch {
	case b.closed:
		return errClosed
	case !b.limit(b.config.CallerTurns, rec.ofCaller), !b.limit(b.config.SessionTurns, rec.ofSession):
		return errShare
	case !b.limit(b.config.Turns, anyone) || !b.fit():
		return errBusy
	}
	b.runs.Add(1)
	b.order = append(b.order, rec)
	return nil
}

func (b *Buffered) leave(rec *recording) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop(func(r *recording) bool { return r == rec })
}

// add adds an event to a turn.
func (b *Buffered) add(rec *recording, e folder.Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	rec.events = append(rec.events, e)
	rec.announce()
	b.count(rec, len(e.Data())+eventCost)
	share, shares := max(b.config.Bytes/4, b.config.TurnBytes), true
	for shares && b.callers[rec.caller] > share {
		shares = b.evict(rec.ofCaller)
	}
	if !b.fit() || !shares || rec.size > b.config.TurnBytes {
		return errLarge
	}
	return nil
}

// restart drops the events of the older attempt.
func (b *Buffered) restart(rec *recording) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count(rec, -rec.size)
	rec.attempt, rec.events = rec.attempt+1, nil
	rec.announce()
}

// The caller of the following methods holds the lock.

// forget drops turns that ended more than BufferConfig.KeepFor ago.
func (b *Buffered) forget() {
	now := b.config.Clock.Now()
	b.drop(func(r *recording) bool { return r.err != nil && now.Sub(r.at) >= b.config.KeepFor })
}

func anyone(*recording) bool                      { return true }
func (r *recording) ofCaller(of *recording) bool  { return of.caller == r.caller }
func (r *recording) ofSession(of *recording) bool { return of.session == r.session }

// limit makes room for one more of some turns of which most can be kept; false if that many are running.
func (b *Buffered) limit(most int, of func(*recording) bool) bool {
	n := 0
	for _, r := range b.order {
		if of(r) {
			n++
		}
	}
	for ; n >= most; n-- {
		if !b.evict(of) {
			return false
		}
	}
	return true
}

// fit evicts turns until the buffer has no more than its bytes; false if the turns that are running have more.
func (b *Buffered) fit() bool {
	for b.bytes > b.config.Bytes {
		if !b.evict(anyone) {
			return false
		}
	}
	return true
}

// evict drops the oldest turn of some that has ended; false if there is none.
func (b *Buffered) evict(of func(*recording) bool) bool {
	i := slices.IndexFunc(b.order, func(r *recording) bool { return r.err != nil && of(r) })
	if i >= 0 {
		b.count(b.order[i], -b.order[i].size)
		b.order = slices.Delete(b.order, i, i+1)
	}
	return i >= 0
}

// drop drops all turns for which gone returns true.
func (b *Buffered) drop(gone func(*recording) bool) {
	b.order = slices.DeleteFunc(b.order, func(r *recording) bool {
		if !gone(r) {
			return false
		}
		b.count(r, -r.size)
		return true
	})
}

// count counts bytes of a turn.
func (b *Buffered) count(rec *recording, bytes int) {
	rec.size += bytes
	b.bytes += bytes
	if b.callers[rec.caller] += bytes; b.callers[rec.caller] == 0 {
		delete(b.callers, rec.caller)
	}
}
