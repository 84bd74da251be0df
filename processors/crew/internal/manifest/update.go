package manifest

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// News is what a CREW_UPDATE says that the roster does not know.
type News struct {
	// Activities are the crew's ledger in the order of time.
	Activities []Activity
	// Health is that of the work of an agent's crew. It may be nil.
	Health func(viewer *roster.Member) Health
}

// Health counts what a CREW_UPDATE's first lines say about the work.
type Health struct {
	// Tasks of the graph of tasks, 0 if there is none; Done includes skipped ones, and Stuck are blocked and failed ones.
	Tasks, Done, Stuck int
	// Decisions are those that wait for a person.
	Decisions int
}

// Update returns the CREW_UPDATE of an agent at a time in Unix milliseconds.
func Update(r *roster.Roster, viewer *roster.Member, news News, nowMS int64) string {
	l := &lines{}
	l.WriteString(state(r, viewer, news, nowMS))
	critical(l, r, viewer, news.Activities, nowMS)
	denials(l, viewer, news.Activities)
	recent(l, news.Activities)
	return l.block("CREW_UPDATE", updateBytes)
}

// Digest identifies what an agent's CREW_UPDATE says, without times and activities.
func Digest(r *roster.Roster, viewer *roster.Member, news News, nowMS int64) string {
	d := digests.Of("crew-update", state(r, viewer, news, nowMS))
	return hex.EncodeToString(d[:])
}

// state is the part of a CREW_UPDATE that the digest is of.
func state(r *roster.Roster, viewer *roster.Member, news News, nowMS int64) string {
	l := &lines{}
	others := peers(r, viewer, nowMS-endedShown)
	var h Health
	if news.Health != nil {
		h = news.Health(viewer)
	}
	health(l, viewer, others, h)
	l.section("CURRENT CREW STATUS")
	l.list(peerLines(r, others), "No other agents.")
	fileLocks(l, r)
	return l.String()
}

// health sums the work up. A lead's agents are its children, those of others are all.
func health(l *lines, viewer *roster.Member, others []*roster.Member, h Health) {
	agents, active, idle, ended := 0, 0, 0, 0
	for _, m := range others {
		if viewer.Lead && m.ParentId != viewer.Id {
			continue
		}
		agents++
		switch {
		case m.Status == view.Idle:
			idle++
		case view.Ended(m.Status):
			ended++
		default:
			active++
		}
	}
	icon := "🟢"
	switch {
	case agents == 0:
		icon = "⚪"
	case h.Stuck > 0:
		icon = "🔴"
	case h.Decisions > 0 || idle > max(1, agents/2):
		icon = "⚠️"
	}
	l.section("PROJECT HEALTH")
	text := fmt.Sprintf("%s Agents: %d active, %d idle, %d done", icon, active, idle, ended)
	if h.Tasks > 0 {
		text += fmt.Sprintf(". Tasks: %d%% done", (100*h.Done+h.Tasks/2)/h.Tasks)
	}
	l.line("%s", text)
	if h.Decisions > 0 {
		l.line("Decisions that wait for the user: %d", h.Decisions)
	}
	if h.Stuck > 0 {
		l.line("Blocked or failed tasks: %d", h.Stuck)
	}
}

func fileLocks(l *lines, r *roster.Roster) {
	l.section("FILE LOCKS")
	var items []string
	for _, lock := range r.GetLocks() {
		holder := view.ShortID(lock.AgentId)
		if m := r.Find(lock.AgentId); m != nil {
			holder += " (" + m.RoleName + ")"
		}
		items = append(items, fmt.Sprintf("%s → %s", oneLine(lock.Path, textRunes), holder))
	}
	l.list(items, "None")
}

// Activity is an entry of the crew's ledger.
type Activity struct {
	AtMS    int64 // Unix milliseconds
	AgentID string
	RoleID  string
	Type    string // its action type
	Summary string
	// Detail is the member "type" of the entry's details, such as direct_message, or empty.
	Detail string
}

const (
	activitiesShown = 20
	denialsShown    = 10
	denialsOf       = 50 // newest entries
	criticalShown   = 5
	criticalFor     = 15 * 60_000 // milliseconds
)

var high = []string{
	"error", "task_completed", "delegated", "delegation_cancelled", "agent_terminated", "sub_agent_spawned", "agent_interrupted",
	"heartbeat_halted", "progress_update",
}

var medium = []string{"file_edit", "decision_made", "message_sent", "group_message", "task_started", "limit_change_requested"}

// newestOnly are the types of which only the newest entry of an agent matters.
var newestOnly = []string{"status_change", "lock_acquired", "lock_released"}

func priority(kind string) int {
	switch {
	case slices.Contains(high, kind):
		return 0
	case slices.Contains(medium, kind):
		return 1
	}
	return 2
}

// Select returns the entries of a ledger, which is in the order of time, that others should see: at most limit, newest first.
// Messages of groups and direct messages are not among them. More important types win over newer entries.
func Select(ledger []Activity, limit int) []Activity {
	type of struct{ kind, agent string }
	seen := map[of]bool{}
	var chosen []Activity
	for _, a := range slices.Backward(ledger) {
		if a.Type == "group_message" || a.Detail == "group_message" || a.Detail == "direct_message" {
			continue
		}
		if slices.Contains(newestOnly, a.Type) {
			if seen[of{a.Type, a.AgentID}] {
				continue
			}
			seen[of{a.Type, a.AgentID}] = true
		}
		chosen = append(chosen, a)
	}
	slices.SortStableFunc(chosen, func(a, b Activity) int { return cmp.Compare(priority(a.Type), priority(b.Type)) })
	chosen = chosen[:min(limit, len(chosen))]
	slices.SortStableFunc(chosen, func(a, b Activity) int { return cmp.Compare(b.AtMS, a.AtMS) })
	return chosen
}

func (l *lines) activity(a Activity) {
	l.line("[%s] Agent %s (%s): %s — %s", view.Time(a.AtMS), view.ShortID(a.AgentID), a.RoleID, a.Type,
		oneLine(a.Summary, textRunes))
}

// recent shows the newest activities.
func recent(l *lines, ledger []Activity) {
	l.section("RECENT ACTIVITY")
	shown := Select(ledger, activitiesShown)
	for _, a := range shown {
		l.activity(a)
	}
	if len(shown) == 0 {
		l.line("No recent activity.")
	}
}

// critical shows a lead what went wrong, or needs it, among its children.
func critical(l *lines, r *roster.Roster, viewer *roster.Member, ledger []Activity, nowMS int64) {
	if !viewer.Lead {
		return
	}
	n := 0
	for _, a := range slices.Backward(ledger) {
		m := r.Find(a.AgentID)
		if m == nil || m.ParentId != viewer.Id || nowMS-a.AtMS > criticalFor || n == criticalShown || !alarming(a.Type) {
			continue
		}
		if n == 0 {
			l.section("CRITICAL EVENTS")
		}
		n++
		l.activity(a)
	}
}

func alarming(kind string) bool {
	return kind == "error" || kind == "agent_terminated" || kind == "delegation_cancelled" || kind == "lock_denied"
}

// denials shows a secretary who waits for a lock.
func denials(l *lines, viewer *roster.Member, ledger []Activity) {
	if viewer.RoleId != "secretary" {
		return
	}
	n := 0
	for _, a := range slices.Backward(ledger[max(0, len(ledger)-denialsOf):]) {
		if a.Type != "lock_denied" || n == denialsShown {
			continue
		}
		if n == 0 {
			l.section("RECENT LOCK DENIALS")
		}
		n++
		l.activity(a)
	}
}
