package fold

import (
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/topics"
)

// apply ends open turns: the one whose id the control names, or all of the session. What it does not find is nothing of
// ours: the turn processor reads the same record.
func (c Controlled) apply(s *session) {
	if c.Tombstone || c.Control.Action != topics.ActionCancel && c.Control.Action != topics.ActionPurge {
		return
	}
	cause := digests.Of(ofControl, c.Cause)
	if _, repeated := s.remembers(cause); repeated || s.err != nil {
		return
	}
	s.remember(cause, 0) // a repeat must not cancel what comes after
	s.changed, s.row.TouchedMs = true, s.nowMS()
	turn := c.Control.RequestID
	for _, t := range slices.Clone(s.row.Open) {
		all := turn == nil || strings.TrimSpace(*turn) == "" || c.Control.Action == topics.ActionPurge
		if all || *turn == t.Id {
			s.close(t, cancelled)
		}
	}
}
