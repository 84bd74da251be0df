package turn

import (
	"fmt"
	"time"

	"github.com/turntable-streams/turntable/internal/retry"
	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// maxEndDelay bounds how long the end or the removal of a session is postponed while a record that was written before may be
// unread, for example its next message after a downtime: from the deadline or from when the inputs began to be read, whichever is
// later. It is longer than the wait of all deadlines (processors.Timed), because the end of a session takes its conversation away.
const maxEndDelay = 10 * time.Minute

// minEndAgain and maxEndAgain bound how long the end or the removal of a session is postponed before it is tried again. Each
// attempt writes the row, in the goroutine that must read the records: after a downtime, all idle sessions of the partition are
// due at once. Therefore the wait is as long as the wait before it, and differs by the session.
const (
	minEndAgain = 5 * time.Second
	maxEndAgain = time.Minute
)

// timeOut ends what is due of the open turn: its step, its open calls, or its wait for a summary.
func (s *transition) timeOut() {
	s.expireOthers()
	if turn := s.row.Turn; turn == nil || s.turnDeadline() > s.due {
		return
	}
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

// expire gives up held records and routes that have expired, and ends or removes the session if it is idle.
func (d deadlineCame) expire(s *transition) {
	s.expireEarly()
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

// timeOutCalls ends the open calls whose time is up with timeout errors.
func (s *transition) timeOutCalls() {
	turn, ms := s.row.Turn, s.rules.ToolTimeout.Milliseconds()
	text := fmt.Sprintf("async tool did not respond within %dms", ms)
	for i, c := range turn.Calls {
		switch {
		case ended(c) || callDeadline(turn, c) > s.due:
		case c.Gate != nil:
			s.endGatedCall(i, topics.CauseParentEnded, timedOutText, reasonOfTimeout)
		default:
			s.endCall(c, s.synthesise(c.ToolUseId, c.Name, len(turn.Calls), ms, text, "timeout"))
		}
	}
	s.completeStep()
}

// expireEarly gives up records that have waited too long for their step. A record whose turn is open, or whose message
// waits, gets a new expiry time: the turn has a deadline, and its records are given up when it ends.
func (s *transition) expireEarly() {
	for _, h := range s.row.Early {
		if h.ExpiresMs <= s.due && s.expects(h) {
			h.ExpiresMs, s.changed = s.after(s.rules.ThinkTimeout), true
		}
	}
	s.giveUpEarly(reasonNotOpened, func(h *turnrow.Held) bool { return h.ExpiresMs <= s.due })
}

// expects reports whether the turn that a held record answers is open, or its message waits.
func (s *session) expects(h *turnrow.Held) bool {
	if h.TurnId == "" {
		return len(h.Input) == digestSize && s.namesWaiting(digest(h.Input))
	}
	return s.accepted(h.TurnId) != nil
}

// postponeEnd reports whether the end or the removal of a session that is due at a time, in milliseconds since the epoch, must
// wait for records that may be unread. It reports false if the limit is reached.
func (d deadlineCame) postponeEnd(s *transition, at int64) bool {
	if d.Unread == nil || at <= d.Unread.From.UnixMilli() {
		return false
	}
	since := max(at, d.Unread.Since.UnixMilli())
	last := since + maxEndDelay.Milliseconds()
	if s.nowMS() >= last {
		return false
	}
	waited := time.Duration(max(0, s.nowMS()-since)) * time.Millisecond
	s.delayed = min(s.after(endAgain(s.key, waited)), last)
	return true
}

// endAgain returns how long the end of a session that was postponed for so long so far is postponed next. It is a pure function,
// so that an event that is repeated writes the same row.
func endAgain(session string, waited time.Duration) time.Duration {
	least := min(max(waited, minEndAgain), maxEndAgain*2/3)
	return least + retry.Jitter(least/2, "end again", session)
}

// reading says how far the inputs of the partition have been read. *processors.Context implements it.
type reading interface {
	Progress() processors.Progress
}

var _ reading = (*processors.Context)(nil)

// withUnread returns the deadline with what may be unread, if it may have to wait for that: Progress can ask each broker of an
// input, and blocks while one does not answer.
func (d deadlineCame) withUnread(state *turnrow.State, now time.Time, rules rules, from reading) deadlineCame {
	if state == nil || !(&session{row: state, key: d.Session, now: now, rules: rules}).mayPostpone() {
		return d
	}
	p := from.Progress()
	d.Unread = &unread{From: p.Through, Since: p.Since}
	return d
}

// mayPostpone reports whether a deadline that comes now may be postponed. If it reports false, the outcome does not depend on
// deadlineCame.Unread. It reads no parts.
func (s *session) mayPostpone() bool {
	row, due, open := s.row, 0, 0
	count := func(at int64) {
		open++
		if at <= s.nowMS() {
			due++
		}
	}
	for _, h := range row.Early {
		count(h.ExpiresMs)
	}
	for _, r := range row.Routes {
		count(r.ExpiresMs)
	}
	for _, g := range row.OtherGates {
		count(g.ExpiresMs)
	}
	if row.Turn != nil || due < open {
		return false
	}
	at, ok := s.idleAt()
	return open > 0 || ok && at <= s.nowMS() // without what is due, the session may be idle
}
