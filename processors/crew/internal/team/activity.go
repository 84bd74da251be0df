package team

import (
	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/topics"
)

// Bytes of an activity in the row.
const (
	maxSummary = 200
	maxDetails = 128
)

// details are what an activity says beside its summary.
type details map[string]any

// log adds an activity of an agent to the ledger, and tells people. IDs rise by one, so a client can tell what it has seen.
func (w *work) log(m *roster.Member, action, summary string, more details) {
	var raw topics.Raw
	if len(more) > 0 {
		raw, _ = json.Marshal(map[string]any(more), json.Deterministic(true)) // texts and numbers
	}
	w.record(m, action, summary, raw)
}

// record is log with details that are an object in JSON, or nil.
func (w *work) record(m *roster.Member, action, summary string, raw topics.Raw) {
	w.LastActivity++
	a := &Activity{
		Id: w.LastActivity, AgentId: m.Id, RoleId: m.RoleId, Action: action, Summary: kept(summary, maxSummary), Details: raw,
		AtMs: w.now(),
	}
	entry := viewOfActivity(a, w.Roster.ProjectId)
	entry.Summary = shown(summary)
	w.step.Event("activity", map[string]any{"entry": entry})
	if len(raw) > maxDetails {
		a.Details = nil
	}
	w.Activities = append(w.Activities, a)
	if surplus := len(w.Activities) - maxActivities; surplus > 0 {
		w.Activities = append([]*Activity(nil), w.Activities[surplus:]...)
	}
}
