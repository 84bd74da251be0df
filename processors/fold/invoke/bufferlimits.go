package invoke

import "slices"

// enter adds a turn and evicts old ones if the buffer is full.
func (b *Buffered) enter(rec *recording) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget()
	switch {
	case b.closed:
		return errClosed
	case b.config.RefuseWhilePaused && b.waits(rec.key.session):
		return errWaits
	}
	for b.shares.callers[rec.caller].turns >= b.config.CallerTurns {
		if !b.evictOwn(func(r *recording) bool { return r.caller == rec.caller }) {
			return errShare
		}
	}
	for b.shares.sessions[rec.key.session] >= b.config.SessionTurns {
		if !b.evictOwn(func(r *recording) bool { return r.key.session == rec.key.session }) {
			return errShare
		}
	}
	for len(b.order) >= b.config.Turns || b.bytes > b.config.Bytes {
		if !b.evict(anyone) {
			return errBusy
		}
	}
	b.runs.Add(1)
	b.shares.add(rec, 1, 0)
	b.count(rec, rec.held())
	b.turns[rec.key] = rec
	b.order = append(b.order, rec)
	return nil
}

// forget ends paused turns at their deadline, and drops turns that ended more than BufferConfig.KeepFor ago. The caller of forget
// and evict holds the lock.
func (b *Buffered) forget() {
	now := b.config.Clock.Now()
	for i := 0; i < len(b.order); {
		if freed, expired := b.order[i].expire(now); expired {
			b.count(b.order[i], -freed)
		}
		if at, done := b.order[i].ended(); done && now.Sub(at) >= b.config.KeepFor {
			b.drop(i)
			continue
		}
		i++
	}
}

// evict drops the oldest turn of some that has ended; false if there is none.
func (b *Buffered) evict(of func(*recording) bool) bool {
	for i, rec := range b.order {
		if _, done := rec.ended(); done && of(rec) {
			b.drop(i)
			return true
		}
	}
	return false
}

func anyone(*recording) bool { return true }

// evictOwn is evict for turns of one caller or one session: if none has ended, it drops the oldest that is paused.
func (b *Buffered) evictOwn(of func(*recording) bool) bool {
	if b.evict(of) {
		return true
	}
	for i, rec := range b.order {
		if rec.waiting() && of(rec) {
			b.drop(i)
			return true
		}
	}
	return false
}

// waits reports whether a turn of a session is paused. The caller holds the lock.
func (b *Buffered) waits(session string) bool {
	return slices.ContainsFunc(b.order, func(r *recording) bool { return r.key.session == session && r.waiting() })
}

// count counts bytes of a turn. The caller holds the lock.
func (b *Buffered) count(rec *recording, bytes int) {
	b.bytes += bytes
	b.shares.add(rec, 0, bytes)
}

func (b *Buffered) drop(i int) {
	rec := b.order[i]
	b.bytes -= rec.held()
	b.shares.add(rec, -1, -rec.held())
	delete(b.turns, rec.key)
	b.order = append(b.order[:i], b.order[i+1:]...)
}

func (b *Buffered) leave(rec *recording) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, r := range b.order {
		if r == rec {
			b.drop(i)
			return
		}
	}
}

// grow counts more bytes of a turn, and reports whether they are too many. The caller holds the lock.
func (b *Buffered) grow(rec *recording, size int) (full bool) {
	b.count(rec, size)
	share := max(b.config.Bytes/4, b.config.TurnBytes)
	over := func() bool { return b.shares.callers[rec.caller].bytes > share }
	for over() && b.evictOwn(func(r *recording) bool { return r.caller == rec.caller }) {
		continue
	}
	for b.bytes > b.config.Bytes && b.evict(anyone) {
		continue
	}
	return over() || b.bytes > b.config.Bytes
}

// eventCost is the estimated memory of an event in addition to its data, in bytes.
const eventCost = 160
