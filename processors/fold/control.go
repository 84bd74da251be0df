package fold

import (
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/topics"
)

// purges reports whether the control purges its session.
func (c controlReceived) purges() bool {
	return !c.Tombstone() && c.Control.Action == topics.ActionPurge
}

// apply closes open turns as cancelled: the turn that the control names, or all of the session. A control that names
// another turn is ignored: the turn processor reads the same topic.
func (c controlReceived) apply(s *transition) {
	if c.Tombstone() || c.Control.Action != topics.ActionCancel && c.Control.Action != topics.ActionPurge {
		return
	}
	cause := digests.Of(ofControl, c.ID)
	if _, repeated := s.remembers(cause); repeated || s.err != nil {
		return
	}
	s.remember(cause, 0) // a redelivered control must not cancel later turns
	s.changed, s.row.TouchedMs = true, s.nowMS()
	s.purges = c.Control.Action == topics.ActionPurge
	turn := c.Control.RequestID
	for _, t := range slices.Clone(s.row.Open) {
		all := turn == nil || strings.TrimSpace(*turn) == "" || c.Control.Action == topics.ActionPurge
		if t.Stepped && !s.purges { // the turn writes how it ends
			continue
		}
		if all || *turn == t.Id {
			s.close(t, cancelled)
		}
	}
}
