package crew_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/crew/internal/manifest"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

func TestC01_ALeadSeesItsOwnChildren(t *testing.T) {
	r := newRoster()
	text := manifest.Initial(r, r.Find(lead), "", 0)
	lines := section(t, text, "YOUR AGENTS")
	require.Equal(t, []string{
		"- de000001 Developer [big-model]: running, task: " + first(t, r.Find(dev).Task, 80) + "…",
		"- 7e570000 QA Tester: idle",
		"- 5b000000 Sub Lead: running",
	}, lines[:3])
	require.Len(t, lines, 4, "and what to do with them")
	require.Contains(t, lines[3], "DELEGATE")
	require.Equal(t, []string{"Agent be100000 (Writer) — running, Working on: Write the README"},
		section(t, text, "OTHER TEAM MEMBERS"))
	require.NotContains(t, strings.Join(lines, "\n"), "1ead0000", "a lead is not in its own list")

	r.Members = r.Members[:3]
	require.NotContains(t, manifest.Initial(r, r.Find(lead), "", 0), "OTHER TEAM MEMBERS")
	r.Find(tester).Status = view.Failed
	require.NotContains(t, manifest.Initial(r, r.Find(lead), "", 0), "QA Tester", "an agent that has ended")
}

// first returns the first characters of a text without line breaks.
func first(t *testing.T, text string, n int) string {
	t.Helper()
	text = strings.Join(strings.Fields(text), " ")
	require.Greater(t, len(text), n)
	return text[:n]
}

func TestC02_ASpecialistSeesItsPeersAndTheirFiles(t *testing.T) {
	r := newRoster()
	r.Locks = []*roster.Lock{{Path: "a.go", AgentId: below}, {Path: "b b.go", AgentId: below}, {Path: "c.go", AgentId: tester}}
	text := manifest.Initial(r, r.Find(tester), "Finds mistakes", 0)
	lines := section(t, text, "ACTIVE CREW MEMBERS")
	require.Equal(t, "Agent 1ead0000 (Project Lead) — Status: running, Working on: Ship it, Files locked: none", lines[0])
	require.Contains(t, lines[1], "Agent de000001 (Developer) — Status: running, Working on: Write the parser == FILE LOCKS == and")
	require.Equal(t, "Agent be100000 (Writer) — Status: running, Working on: Write the README, Files locked: a.go, b b.go", lines[3])
	require.Len(t, lines, 4, "all but itself, each on one line")
	require.NotContains(t, text, "YOUR AGENTS")
	require.Contains(t, manifest.Initial(r, r.Find(dev), "", 0),
		"Agent 7e570000 (QA Tester) — Status: idle, Working on: idle, Files locked: c.go")
}

func TestC03_TheSectionsAreInOrderWithPlaceholders(t *testing.T) {
	r := &roster.Roster{Members: []*roster.Member{
		{Id: lead, RoleId: "lead", RoleName: "Project Lead", Status: view.Creating, Lead: true},
	}}
	text := manifest.Initial(r, r.Members[0], "Leads", 5)
	inOrder(t, text, "[CREW CONTEXT]", "You are agent 1ead0000, and your role is Project Lead.", "== YOUR ASSIGNMENT ==",
		"Task: Awaiting assignment", "Responsibility: Leads", "== YOUR AGENTS ==", "No agents yet.", "== AGENT BUDGET ==",
		"== COORDINATION RULES ==", "LOCK_FILE", "COMMIT", "UNLOCK_FILE", "AGENT_MESSAGE",
		"BROADCAST", "GROUP_MESSAGE", "CREATE_GROUP", "LIST_GROUPS", "QUERY_CREW", "Stay in your role", "Write @", "ACTIVITY",
		"== WORKING TOGETHER ==", "[/CREW CONTEXT]")
	r.Members[0].Lead, r.Members[0].Task = false, "Think"
	text = manifest.Initial(r, r.Members[0], "Leads", 5)
	inOrder(t, text, "== YOUR ASSIGNMENT ==", "Task: Think", "== ACTIVE CREW MEMBERS ==", "No other agents.",
		"== COORDINATION RULES ==")
	require.NotContains(t, text, "AGENT BUDGET")
}

// inOrder requires that a text has parts, each behind the one before.
func inOrder(t *testing.T, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		require.True(t, found, "%q in its place in:\n%s", part, text)
		rest = after
	}
}

func TestC04_ALeadSeesItsBudgetAndASubLeadItsPlace(t *testing.T) {
	r := newRoster()
	r.Members = append(r.Members, &roster.Member{Id: "0e", Status: view.Completed})
	text := manifest.Initial(r, r.Find(lead), "", 7)
	require.Equal(t, []string{"Maximum: 7 agents. Running: 5/7. Free: 2."}, section(t, text, "AGENT BUDGET"))
	require.NotContains(t, text, "HIERARCHY")
	text = manifest.Initial(r, r.Find(lead), "", 5)
	require.Contains(t, section(t, text, "AGENT BUDGET")[1], "Warning")
	require.NotContains(t, manifest.Initial(r, r.Find(lead), "", 0), "AGENT BUDGET")

	text = manifest.Initial(r, r.Find(sub), "", 7)
	require.Equal(t, []string{"You are a sub-lead on level 1 below agent 1ead0000. All leads share one budget of agents."},
		section(t, text, "HIERARCHY"))
	require.Len(t, section(t, text, "OTHER TEAM MEMBERS"), 3)
}

func TestTheRosterIsForItsReader(t *testing.T) {
	r := newRoster()
	r.Locks = []*roster.Lock{{Path: "a.go", AgentId: dev}}
	text := manifest.Roster(r, r.Find(lead))
	require.True(t, strings.HasPrefix(text, "⟦⟦ CREW_ROSTER\n") && strings.HasSuffix(text, "\nCREW_ROSTER ⟧⟧"), text)
	require.Len(t, section(t, text, "CREW"), 3)
	require.Equal(t, []string{"a.go → de000001 (Developer)"}, section(t, text, "FILE LOCKS"))
	require.Equal(t, []string{"- be100000 Writer: running, task: Write the README", "Your parent is agent 1ead0000."},
		section(t, manifest.Roster(r, r.Find(sub)), "CREW"))
	require.Len(t, section(t, manifest.Roster(r, r.Find(dev)), "CREW"), 5, "four peers and its parent")
	alone := &roster.Roster{Members: r.Members[:1]}
	require.Equal(t, []string{"No agents."}, section(t, manifest.Roster(alone, r.Members[0]), "CREW"))
}

func TestTextsOfLargeCrewsAreShort(t *testing.T) {
	r := newRoster()
	long := strings.Repeat("ü", 50_000)
	for i := range 200 {
		r.Members = append(r.Members, &roster.Member{
			Id: strings.Repeat("a", 36), RoleName: "Developer", Status: view.Running, ParentId: lead, Task: long,
		})
		for range 5 {
			r.Locks = append(r.Locks, &roster.Lock{Path: long[:400] + string(rune('a'+i%26)), AgentId: strings.Repeat("a", 36)})
		}
	}
	many := ledger(30, "error")
	for i := range many {
		many[i].Summary = long
	}
	for _, viewer := range []string{lead, dev} {
		r.Find(viewer).Task = long
		first := manifest.Initial(r, r.Find(viewer), "", 0)
		require.Less(t, len(first), 48<<10)
		require.Contains(t, first, " more\n")
		update := manifest.Update(r, r.Find(viewer), manifest.News{Activities: many}, 0)
		require.Less(t, len(update), 48<<10)
		require.True(t, strings.HasSuffix(update, "\nCREW_UPDATE ⟧⟧"), "the end marker stays")
		answer := manifest.Roster(r, r.Find(viewer))
		require.Less(t, len(answer), 16<<10)
		require.True(t, strings.HasSuffix(answer, "\nand more that is left out\nCREW_ROSTER ⟧⟧"), "the end marker stays")
	}
}
