package manifest

import (
	"cmp"
	"slices"

	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

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
