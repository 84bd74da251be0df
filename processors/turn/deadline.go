package turn

import (
	"math"
	"time"

	"github.com/turntable-streams/turntable/internal/retry"
)

func (d DeadlineCame) apply(s *transition) {
	d.end(s)
	// A deadline can fire too early if rules were changed or the clock was set back. It fires again only if the row is
	// written.
	s.changed = s.changed || s.row.DeadlineMs != 0
}

// After a downtime or a lag, a deadline can fire while the record that it waits for has been on its topic for a long time: the
// next message of an idle session, the answer of the model, the message of an answer that is held. The end of a session, its
// removal, the timeouts of steps and calls, and the expiry of held records are therefore postponed for as long as such a record
// may be unread. maxEndDelay and maxTimeoutDelay limit this, from the deadline or from when the inputs began to be read,
// whichever is later: a partition whose inputs are never read to their ends, for example because a handler fails indefinitely,
// must not keep turns and sessions open.
const (
	maxEndDelay     = 10 * time.Minute
	maxTimeoutDelay = 30 * time.Second
)

// readAgain is how long the timeout of a step or a call, or the expiry of a held record, is postponed before it is tried again.
const readAgain = time.Second

// minEndAgain and maxEndAgain bound how long the end or the removal of a session is postponed before it is tried again. Each
// attempt writes the row, in the goroutine that must read the records: after a downtime, all idle sessions of the partition are
// due at once. Therefore the wait is as long as the wait before it, and differs by the session.
const (
	minEndAgain = 5 * time.Second
	maxEndAgain = time.Minute
)

// postpone reports whether a timeout or an expiry that is due at a time, in milliseconds since the epoch, must wait for records
// that may be unread.
func (d DeadlineCame) postpone(s *transition, at int64) bool {
	return d.wait(s, at, maxTimeoutDelay, func(time.Duration) time.Duration { return readAgain })
}

// postponeEnd is postpone for the end or the removal of a session.
func (d DeadlineCame) postponeEnd(s *transition, at int64) bool {
	return d.wait(s, at, maxEndDelay, func(waited time.Duration) time.Duration { return endAgain(s.key, waited) })
}

// wait postpones what is due at a time for as long as again says of how long it was postponed so far. It reports false if no
// record may be unread, or if the limit is reached.
func (d DeadlineCame) wait(s *transition, at int64, limit time.Duration, again func(waited time.Duration) time.Duration) bool {
	if d.Unread == nil || at <= d.Unread.From.UnixMilli() {
		return false
	}
	since := max(at, d.Unread.Since.UnixMilli())
	last := since + limit.Milliseconds()
	if s.nowMS() >= last {
		return false
	}
	waited := time.Duration(max(0, s.nowMS()-since)) * time.Millisecond
	next := min(s.after(again(waited)), last)
	if s.delayed == 0 || next < s.delayed {
		s.delayed = next
	}
	return true
}

// endAgain returns how long the end of a session that was postponed for so long so far is postponed next. It is a pure function,
// so that an event that is repeated writes the same row.
func endAgain(session string, waited time.Duration) time.Duration {
	least := min(max(waited, minEndAgain), maxEndAgain*2/3)
	return least + retry.Jitter(least/2, "end again", session)
}

func (d DeadlineCame) end(s *transition) {
	s.expireOthers()
	if turn := s.row.Turn; turn != nil && s.turnDeadline() <= s.nowMS() && !d.postpone(s, s.turnDeadline()) {
		s.changed, s.row.TouchedMs = true, s.nowMS()
		switch {
		case s.compacting():
			s.endCompaction()
		case s.thinking():
			s.fail(thinkTimeout(s))
		default:
			s.timeOutCalls()
		}
	}
	s.applyEarly() // before expiry: a record whose step opens now is not too late
	d.expireEarly(s)
	s.expireRoutes()
	if at, ok := s.idleAt(); ok && at <= s.nowMS() && d.postponeEnd(s, at) {
		return
	}
	if at, ok := s.endsAt(); ok && at <= s.nowMS() {
		s.endSession(at)
	}
	if at, ok := s.idleAt(); !ok || at > s.nowMS() || s.err != nil {
		return
	}
	if s.onlyMemoriesLeft() || s.rules.IdlePurge == 0 {
		s.changed, s.erased = true, true
		return
	}
	touched := s.row.TouchedMs
	s.purge(failure{}) // no message is open or waiting, so the failure is not used
	s.row.TouchedMs = touched
	s.erased = s.forgottenAt() <= s.nowMS()
}

// deadline returns the earliest open deadline in milliseconds since the epoch, or 0 if there is none.
func (s *transition) deadline() int64 {
	earliest := int64(0)
	add := func(at int64) {
		if earliest == 0 || at < earliest {
			earliest = at
		}
	}
	if s.row.Turn != nil {
		add(s.postponed(s.turnDeadline()))
	}
	for _, h := range s.row.Early {
		add(s.postponed(h.ExpiresMs))
	}
	for _, r := range s.row.Routes {
		add(r.ExpiresMs)
	}
	for _, g := range s.row.OtherGates {
		add(g.ExpiresMs)
	}
	for a := range s.unfinished() {
		if a.Route != nil {
			add(a.Route.ExpiresMs)
		}
	}
	if at, ok := s.idleAt(); ok {
		add(s.postponed(at))
	}
	return earliest
}

// postponed returns when a deadline is due again if it was postponed, else the deadline. Both are in milliseconds since the
// epoch. Only a deadline that is due can have been postponed.
func (s *transition) postponed(at int64) int64 {
	if at > s.nowMS() {
		return at
	}
	return max(at, s.delayed)
}

// turnDeadline returns when the open step or the first of the open calls times out, in milliseconds since the epoch. With
// Supersede, a waiting message makes a step time out earlier. A step whose clock is stopped has no deadline.
func (s *transition) turnDeadline() int64 {
	if s.row.Turn.StoppedMs != 0 && s.paused() {
		return math.MaxInt64
	}
	if len(s.row.Turn.Calls) > 0 {
		return callsDeadline(s.row.Turn)
	}
	at := s.row.Turn.DeadlineMs
	if s.rules.Policy != Supersede || !s.thinking() || stateWaitingMessages(s.row) == 0 {
		return at
	}
	return min(at, at-(s.rules.ThinkTimeout-s.rules.SupersedeAfter).Milliseconds())
}

// idleAt returns when a session that waits for nothing ends or is removed: it ends as endsAt says, and is removed when its
// memories expire if only memories, or the cost of a session that ended, are left, else after Config.IdlePurge if that is set.
// ok is false if the session waits for something or is never removed.
func (s *transition) idleAt() (at int64, ok bool) {
	switch {
	case s.waitsForSomething():
		return 0, false
	case s.onlyMemoriesLeft():
		return s.forgottenAt(), true
	case s.row.LastTurn != "" && s.rules.Memoir != nil:
		return s.endsAt()
	case s.rules.IdlePurge > 0:
		return s.row.TouchedMs + s.rules.IdlePurge.Milliseconds(), true
	case s.onlyCostLeft():
		return s.forgottenAt(), true
	default:
		return 0, false
	}
}

// forgottenAt returns when the last memory expires, in milliseconds since the epoch.
func (s *transition) forgottenAt() int64 { return s.row.TouchedMs + s.rules.RememberFor.Milliseconds() }
