package team

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/command"
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

// activity adds what an agent says that it did to the ledger.
func (w *work) activity(o order, c command.Activity) string {
	raw := c.Details
	if len(raw) > maxShown || len(raw) == 0 || raw[0] != '{' {
		raw = nil // details are an object
	}
	w.record(o.from, kept(cmp.Or(c.ActionType, "message_sent"), maxID), c.Summary, raw)
	return ""
}

// decided records a decision.
func (w *work) decided(o order, c command.Decision) string {
	if w.propose(o.from, c.Title, c.Rationale, c.NeedsConfirmation, 0) == nil {
		return o.refused("too many decisions are open")
	}
	return ""
}

// requestLimit asks people for another limit of agents.
func (w *work) requestLimit(o order, c command.RequestLimitChange) string {
	title := "Change the limit of agents"
	d := w.propose(o.from, title, c.Reason, true, c.Limit)
	if d == nil {
		return o.refused("too many decisions are open")
	}
	w.log(o.from, "limit_change_requested", title, details{"limit": c.Limit, "decisionId": d.Id})
	return fmt.Sprintf("A person is asked whether the crew may have %d agents.", c.Limit)
}

// lockChanged takes over what happened to a lock, for what agents are told about the crew.
func (w *work) lockChanged(in crewbody.LockChanged) {
	m := w.Roster.Find(in.AgentID)
	if m == nil {
		m = &roster.Member{Id: kept(in.AgentID, maxID), RoleId: kept(in.AgentRole, maxName), RoleName: kept(in.AgentRole, maxName)}
	}
	path := kept(in.FilePath, maxPath)
	switch in.Action {
	case crewbody.LockAcquired:
		w.unlocked(in)
		w.Roster.Locks = append(w.Roster.Locks, &roster.Lock{
			Path: path, AgentId: m.Id, Reason: kept(in.Reason, maxSummary), ExpiresMs: in.ExpiresMS,
			Repository: kept(in.Repository, maxName),
		})
		for size(w.Roster.Locks) > maxLockBytes {
			w.Roster.Locks = w.Roster.Locks[1:]
		}
		w.log(m, "lock_acquired", "Locked "+path, details{"filePath": path})
	case crewbody.LockReleased, crewbody.LockExpired:
		w.unlocked(in)
		w.log(m, "lock_released", "Lock "+in.Action+": "+path, details{"filePath": path})
	case crewbody.LockDenied:
		w.log(m, "lock_denied", "Lock denied: "+path, details{"filePath": path, "holder": kept(in.HolderID, maxID)})
		return
	default:
		return
	}
	w.Refresh.Trigger(w.step, "")
}

// unlocked removes the lock of a path, which the row may have cut.
func (w *work) unlocked(in crewbody.LockChanged) {
	path, repository := kept(in.FilePath, maxPath), kept(in.Repository, maxName)
	w.Roster.Locks = slices.DeleteFunc(w.Roster.Locks, func(l *roster.Lock) bool {
		return l.Path == path && l.Repository == repository
	})
}

// committed notes a commit.
func (w *work) committed(in crewbody.Committed) {
	m := w.Roster.Find(in.AgentID)
	if m == nil {
		return
	}
	message, _, _ := strings.Cut(in.Message, "\n")
	w.log(m, "file_edit", fmt.Sprintf("Commit: %s (%d files)", truncate.Characters(message, 120), len(in.Files)), details{
		"type": "commit", "commit": in.Commit, "files": in.Files, "message": shown(in.Message),
	})
}
