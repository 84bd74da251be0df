package turn

import "math"

// deadline returns the earliest open deadline in milliseconds since the epoch, or 0 if there is none.
func (s *session) deadline() int64 {
	earliest := int64(0)
	add := func(at int64) {
		if earliest == 0 || at < earliest {
			earliest = at
		}
	}
	if s.row.Turn != nil {
		add(s.turnDeadline())
	}
	for _, h := range s.row.Early {
		add(h.ExpiresMs)
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

// postponed returns when the end of a session is due again if it was postponed, else when it is due. Both are in milliseconds
// since the epoch. Only an end that is due can have been postponed.
func (s *session) postponed(at int64) int64 {
	if at > s.nowMS() {
		return at
	}
	return max(at, s.delayed)
}

// turnDeadline returns when the open step or the first of the open calls times out, in milliseconds since the epoch. With
// Supersede, a waiting message makes a step time out earlier. A step whose clock is stopped has no deadline.
func (s *session) turnDeadline() int64 {
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
func (s *session) idleAt() (at int64, ok bool) {
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
func (s *session) forgottenAt() int64 { return s.row.TouchedMs + s.rules.RememberFor.Milliseconds() }

// endsAt returns when an idle session ends, in milliseconds since the epoch. ok is false if it does not.
func (s *session) endsAt() (at int64, ok bool) {
	if s.rules.Memoir == nil || s.row.LastTurn == "" || s.waitsForSomething() {
		return 0, false
	}
	return s.row.TouchedMs + s.rules.Memoir.After.Milliseconds(), true
}

// waitsForSomething reports whether something of the session is open. No message waits without an open turn.
func (s *session) waitsForSomething() bool {
	return s.row.Turn != nil || len(s.row.Routes)+len(s.row.Early)+len(s.row.OtherGates) > 0
}

// onlyCostLeft reports whether only memories and the cost are left of a session that has ended.
func (s *session) onlyCostLeft() bool { return s.rules.Memoir != nil && s.noConversationLeft() }

// onlyMemoriesLeft reports whether only memories are left of a session.
func (s *session) onlyMemoriesLeft() bool {
	return s.noConversationLeft() && s.row.Cost == nil && s.row.Spent == nil
}

// noConversationLeft reports whether only memories and the cost are left of a session.
func (s *session) noConversationLeft() bool {
	return s.row.Turn == nil && len(s.row.Waiting) == 0 && len(s.row.Routes) == 0 && len(s.row.Early) == 0 &&
		len(s.row.OtherGates) == 0 && s.row.LastTurn == "" &&
		s.row.History == nil && s.row.HistoryParts == nil && hiddenSize(s.row) == 0 && s.row.UserId == nil
}
