package manifest

import (
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// Roster returns the answer to QUERY_CREW. A lead sees its children, and a sub-lead the leads beside it too; other agents see
// the whole crew, because they coordinate with all of it. Agents that have ended are left out.
func Roster(r *roster.Roster, viewer *roster.Member) string {
	l := &lines{}
	l.section("CREW")
	var items []string
	for _, m := range peers(r, viewer, never) {
		child := m.ParentId == viewer.Id
		beside := viewer.ParentId != "" && m.Lead && m.ParentId == viewer.ParentId
		if viewer.Lead && !child && !beside {
			continue
		}
		if viewer.Lead {
			items = append(items, childLine(m))
		} else {
			items = append(items, peerLine(r, m))
		}
	}
	l.list(items, "No agents.")
	if viewer.ParentId != "" {
		l.line("Your parent is agent %s.", view.ShortID(viewer.ParentId))
	}
	fileLocks(l, r)
	return l.block("CREW_ROSTER", rosterBytes)
}
