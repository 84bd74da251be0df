package manifest

import (
	"cmp"
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
	l.line("Task: %s", truncate.Characters(cmp.Or(viewer.Task, "Awaiting assignment"), ownTaskRunes))
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

// coordination are the rules that every agent gets. Their order is that of how often they are needed.
const coordination = `Commands are text of your answer, not tool calls: write them as shown, each in a block of its own.
1. Do not edit files that another agent has locked.
2. Lock a file before you edit it: ⟦⟦ LOCK_FILE {"filePath": "path", "reason": "why"} ⟧⟧ A path is relative to your directory, or absolute; answers name it relative to the repository's root.
3. Lock new files too before you commit: ⟦⟦ COMMIT {"message": "what changed"} ⟧⟧ commits only what you have locked.
4. Release a file when you have committed it: ⟦⟦ UNLOCK_FILE {"filePath": "path"} ⟧⟧
5. Write to one agent: ⟦⟦ AGENT_MESSAGE {"to": "agent ID or role", "content": "text"} ⟧⟧
6. Write to all agents of your lead, without the lead: ⟦⟦ BROADCAST {"content": "text"} ⟧⟧
7. Write to a group: ⟦⟦ GROUP_MESSAGE {"group": "name", "content": "text"} ⟧⟧
8. Create a group: ⟦⟦ CREATE_GROUP {"name": "name", "members": ["agent ID"], "roles": ["role"]} ⟧⟧
9. See your groups: ⟦⟦ LIST_GROUPS ⟧⟧
10. See the crew: ⟦⟦ QUERY_CREW ⟧⟧
11. Stay in your role. Leave the work of other roles to their agents.
12. Write @ before the ID of an agent when you name it, such as @1a2b3c4d.
13. Record what you decide: ⟦⟦ ACTIVITY {"actionType": "decision_made", "summary": "what and why"} ⟧⟧
`

// guidance is advice.
const guidance = `Report progress with ⟦⟦ PROGRESS {"summary": "text", "percent": 50} ⟧⟧ after each part of your task.
Tell the agents that depend on something as soon as you change it, and say what you learned that others can use.
Say so, with a reason, when you disagree with a plan, before work on it begins.
Write code that another agent can change: small files, clear names, tests.
When your task is done, write ⟦⟦ COMPLETE_TASK {"summary": "what you did"} ⟧⟧.
`
