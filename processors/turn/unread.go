package turn

import (
	"slices"
	"time"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/processors"
)

// reading says how far the inputs of the partition have been read. *processors.Context implements it.
type reading interface {
	Progress() processors.Progress
}

var _ reading = (*processors.Context)(nil)

// withUnread returns the deadline with what may be unread, if it may have to wait for that: Progress can ask each broker of an
// input, and blocks while one does not answer.
func (d DeadlineCame) withUnread(state *turnrow.State, now time.Time, rules rules, from reading) DeadlineCame {
	if state == nil || !(&transition{row: state, key: d.Session, now: now, rules: rules}).mayPostpone() {
		return d
	}
	p := from.Progress()
	d.Unread = &Unread{From: p.Through, Since: p.Since}
	return d
}

// mayPostpone reports whether a deadline that comes now may be postponed. If it reports false, the outcome does not depend on
// DeadlineCame.Unread. It reads no parts.
func (s *transition) mayPostpone() bool {
	due := func(at int64) bool { return at <= s.nowMS() }
	gateDue := func(g *turnrow.OtherGate) bool { return due(g.ExpiresMs) }
	switch row := s.row; {
	case slices.ContainsFunc(row.Early, func(h *turnrow.Held) bool { return due(h.ExpiresMs) }):
		return true
	case row.Turn != nil: // without the gate, the clock of the step runs again
		return due(s.turnDeadline()) || slices.ContainsFunc(row.OtherGates, gateDue)
	case len(row.Early) > 0:
		return false
	case len(row.Routes)+len(row.OtherGates) > 0: // without them, the session may be idle
		return !slices.ContainsFunc(row.Routes, func(r *turnrow.ReplyRoute) bool { return !due(r.ExpiresMs) }) &&
			!slices.ContainsFunc(row.OtherGates, func(g *turnrow.OtherGate) bool { return !gateDue(g) })
	}
	at, ok := s.idleAt()
	return ok && due(at)
}
