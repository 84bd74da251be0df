package manifest

import (
	"fmt"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// Initial returns the manifest of an agent's first prompt. It is not sent to a session that is continued. responsibility describes the
// viewer's role, and may be empty. limit is how many agents the crew may have that have not ended, 0 if the viewer need not know.
func Initial(r *roster.Roster, viewer *roster.Member, responsibility string, limit int) string {
	l := &lines{}
	l.line("[CREW CONTEXT]")
	l.line("You are agent %s, and your role is %s.", short(viewer), viewer.RoleName)
	assignment(l, viewer, responsibility)
	if viewer.Lead {
		leadCrew(l, r, viewer)
	} else {
		l.section("ACTIVE CREW MEMBERS")
		l.list(peerLines(r, peers(r, viewer, never)), "No other agents.")
	}
	if viewer.Lead && limit > 0 {
		budget(l, r, limit)
	}
	l.section("COORDINATION RULES")
	l.WriteString(coordination)
	l.section("WORKING TOGETHER")
	l.WriteString(guidance)
	l.line("[/CREW CONTEXT]")
	return l.String()
}

func assignment(l *lines, viewer *roster.Member, responsibility string) {
	l.section("YOUR ASSIGNMENT")
	task := viewer.Task
	if task == "" {
		task = "Awaiting assignment"
	}
	l.line("Task: %s", truncate.Characters(task, ownTaskRunes))
	if responsibility != "" {
		l.line("Responsibility: %s", responsibility)
	}
}

// leadCrew shows a lead its children, its place above and below other leads, and the agents that are not its children.
func leadCrew(l *lines, r *roster.Roster, viewer *roster.Member) {
	l.section("YOUR AGENTS")
	var children, others []string
	for _, m := range peers(r, viewer, never) {
		if m.ParentId == viewer.Id {
			children = append(children, childLine(m))
			continue
		}
		others = append(others, fmt.Sprintf("%s — %s, Working on: %s", who(m), m.Status, working(m, childTaskRunes)))
	}
	l.list(children, "No agents yet.")
	l.line("Give tasks with DELEGATE and write to agents with AGENT_MESSAGE.")
	if viewer.ParentId != "" {
		l.section("HIERARCHY")
		l.line("You are a sub-lead on level %d below agent %s. All leads share one budget of agents.", viewer.Level,
			view.ShortID(viewer.ParentId))
	}
	if len(others) > 0 {
		l.section("OTHER TEAM MEMBERS")
		l.list(others, "")
	}
}

func budget(l *lines, r *roster.Roster, limit int) {
	n := 0
	for _, m := range r.GetMembers() {
		if !view.Ended(m.Status) {
			n++
		}
	}
	l.section("AGENT BUDGET")
	l.line("Maximum: %d agents. Running: %d/%d. Free: %d.", limit, n, limit, max(0, limit-n))
	if n >= limit {
		l.line("Warning: the crew is at its limit. End an agent before you create another.")
	}
}
