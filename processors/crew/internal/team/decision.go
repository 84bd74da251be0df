package team

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// The statuses of a decision. It begins as Recorded and ends in one of the others.
const (
	Recorded  = "recorded"
	confirmed = "confirmed"
	rejected  = "rejected"
	dismissed = "dismissed"
)

// confirmAfter is when a decision confirms itself.
const confirmAfter = time.Minute

// maxRationale is the bytes of a rationale in the row.
const maxRationale = 300

// Verdicts are what the actions of people make of a decision.
var Verdicts = map[string]string{"confirm": confirmed, "reject": rejected, "dismiss": dismissed}

// propose records a decision of an agent. One with a limit is of the system: only a person confirms it. It returns nil if too
// many are open.
func (w *work) propose(m *roster.Member, title, rationale string, needsConfirmation bool, limit int) *Decision {
	if len(w.Decisions) >= maxDecisions && !evict(&w.Decisions, (*Decision).resolved) {
		return nil
	}
	d := &Decision{
		Id: w.step.NewID("dec"), AgentId: m.Id, Role: m.RoleName, LeadId: w.leadOf(m), Title: kept(title, 4*maxName),
		Rationale: kept(rationale, maxRationale), NeedsConfirmation: needsConfirmation, Status: Recorded, CreatedMs: w.now(),
		Category: categoryOf(title), Limit: int32(limit),
	}
	if limit == 0 {
		d.ConfirmMs = w.now() + confirmAfter.Milliseconds()
	}
	w.Decisions = append(w.Decisions, d)
	v := w.decision(d)
	w.step.Event("lead:decision", map[string]any{
		"id": d.Id, "agentId": d.AgentId, "agentRole": d.Role, "leadId": d.LeadId, "title": d.Title, "rationale": shown(rationale),
		"needsConfirmation": d.NeedsConfirmation, "status": d.Status, "category": d.Category, "decision": v,
	})
	w.log(m, "decision_made", "Decision: "+d.Title, details{"decisionId": d.Id})
	w.attention("decision_new", d.LeadId)
	return d
}

func (d *Decision) resolved() bool { return d.Status != Recorded }

// leadOf is the lead in whose name an agent acts: the agent itself if it has neither a lead nor leads.
func (w *work) leadOf(m *roster.Member) string {
	return cmp.Or(w.Roster.LeadOf(m), m.Id)
}

// decide resolves decisions for a person. A decision that is resolved stays as it is.
func (w *work) decide(in crewbody.Decide) {
	verdict, ok := Verdicts[in.Action]
	if !ok {
		w.problem("A decision can be confirmed, rejected or dismissed.")
		return
	}
	var list []*Decision
	for _, id := range in.DecisionIDs {
		i := slices.IndexFunc(w.Decisions, func(d *Decision) bool { return d.Id == id && d.Status == Recorded })
		if i >= 0 {
			w.resolve(w.Decisions[i], verdict, false)
			list = append(list, w.Decisions[i])
		}
	}
	switch len(list) {
	case 0:
	case 1:
		w.step.Event("decision:"+verdict, map[string]any{"decision": w.decision(list[0])})
		w.attention("decision_resolved", list[0].LeadId)
	default:
		views := make([]view.Decision, len(list))
		for i, d := range list {
			views[i] = w.decision(d)
		}
		w.step.Event("decisions:batch", map[string]any{"action": in.Action, "decisions": views})
		w.attention("decision_batch", "")
	}
}

// resolve ends a decision. The agent is told unless it confirmed itself.
func (w *work) resolve(d *Decision, verdict string, auto bool) {
	d.Status, d.AutoApproved, d.ResolvedMs, d.ConfirmMs = verdict, auto, w.now(), 0
	if d.Limit > 0 && verdict == confirmed {
		w.Settings.MaxAgents = d.Limit
	}
	m := w.Roster.Find(d.AgentId)
	if m == nil || auto || view.Ended(m.Status) {
		return
	}
	w.note(m, fmt.Sprintf("Your decision %q was %s by a person.", truncate.Characters(d.Title, maxName), verdict))
}

// confirmDue confirms the decisions that no one objected to.
func (w *work) confirmDue() {
	if len(w.Holds) > 0 {
		return
	}
	for _, d := range w.Decisions {
		if d.Status == Recorded && d.ConfirmMs > 0 && d.ConfirmMs <= w.now() {
			w.resolve(d, confirmed, true)
			w.step.Event("decision:confirmed", map[string]any{"decision": w.decision(d)})
			w.attention("decision_resolved", d.LeadId)
		}
	}
}

// categories are the categories of decisions with the words in their titles, in the order in which they are tried.
var categories = []struct {
	name  string
	words []string
}{
	{"dependency", []string{"dependenc", "package", "library", "upgrade", "version"}},
	{"testing", []string{"test", "coverage", "fixture", "mock"}},
	{"tool_access", []string{"tool", "permission", "access", "command", "limit"}},
	{"architecture", []string{"architect", "design", "structure", "api", "schema", "database", "pattern", "interface", "module"}},
	{"style", []string{"style", "format", "naming", "lint", "convention"}},
}

func categoryOf(title string) string {
	title = strings.ToLower(title)
	for _, c := range categories {
		if slices.ContainsFunc(c.words, func(word string) bool { return strings.Contains(title, word) }) {
			return c.name
		}
	}
	return "general"
}

// maxHold bounds how long decisions wait for a client that does not repeat that it looks at them.
const maxHold = 5 * time.Minute

// queueHeld stops the timers of decisions while a person looks at them. A client's hold ends with its connection: the door
// repeats it, and it expires.
func (w *work) queueHeld(in crewbody.QueueHeld) {
	client := kept(in.Client, maxName)
	w.Holds = slices.DeleteFunc(w.Holds, func(h *Hold) bool { return h.Client == client })
	until := min(in.UntilMS, w.now()+maxHold.Milliseconds())
	switch {
	case !in.Held || until <= w.now():
		if len(w.Holds) == 0 {
			w.release(w.now())
		}
		return
	case len(w.Holds) == maxHolds:
		w.Holds = w.Holds[1:]
	}
	w.HeldSinceMs = cmp.Or(w.HeldSinceMs, w.now())
	w.Holds = append(w.Holds, &Hold{Client: client, UntilMs: until})
}

// expireHolds ends the holds that clients do not repeat.
func (w *work) expireHolds() {
	end := int64(0)
	for _, h := range w.Holds {
		end = max(end, h.UntilMs)
	}
	w.Holds = slices.DeleteFunc(w.Holds, func(h *Hold) bool { return h.UntilMs <= w.now() })
	if len(w.Holds) == 0 && w.HeldSinceMs > 0 {
		w.release(end)
	}
}

// release lets the timers of decisions run again from a time on. Each goes on with what was left of it.
func (w *work) release(at int64) {
	since := w.HeldSinceMs
	w.HeldSinceMs = 0
	if since == 0 {
		return
	}
	for _, d := range w.Decisions {
		if d.Status == Recorded && d.ConfirmMs > 0 {
			d.ConfirmMs += max(0, at-max(since, d.CreatedMs))
		}
	}
}
