package manifest

import (
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/view"
)

// Roster returns the answer to QUERY_CREW. A lead sees its children, and a sub-lead the leads beside it too; other agents see
// the whole crew, because they coordinate with all of it. Agents that have ended are left out.
func Roster(r *roster.Roster, viewer *roster.Member) string {
	l := &lines{}
	l.section("CREW")
	none := true
	for _, m := range peers(r, viewer, never) {
		child := m.ParentId == viewer.Id
		beside := viewer.ParentId != "" && m.Lead && m.ParentId == viewer.ParentId
		if viewer.Lead && !child && !beside {
			continue
		}
		none = false
		if viewer.Lead {
			l.line("%s", childLine(m))
		} else {
			l.line("%s", peerLine(r, m))
		}
	}
	if none {
		l.line("No agents.")
	}
	if viewer.ParentId != "" {
		l.line("Your parent is agent %s.", view.ShortID(viewer.ParentId))
	}
	fileLocks(l, r)
	return "⟦⟦ CREW_ROSTER\n" + l.String() + "CREW_ROSTER ⟧⟧"
}
