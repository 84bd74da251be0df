package team

import (
	"fmt"
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// Characters of a report.
const (
	reportedTask   = 150
	reportedOutput = 4000
)

// idleReport tells an agent's parent that the agent has finished, once until it runs again, and ends what the agent had to do.
// A lead that waits for its own agents has not finished.
func (w *work) idleReport(m *roster.Member, in crewbody.AgentIdle) {
	d := w.duty(m)
	if m.ParentId == "" || m.Resuming || d.IdleReported || d.Completed || w.delegates(m) || w.released(m) {
		return
	}
	if m.Task == "" && !w.working(m) {
		return
	}
	d.IdleReported = true
	w.report(m, "finished", "completed", in.Output)
	w.finish(m, in.Output, 0)
}

// released reports whether an agent's lead has ended the agent's task for it, and nothing else is left to do.
func (w *work) released(m *roster.Member) bool {
	over := slices.ContainsFunc(w.Tasks, func(t *Task) bool { return t.AgentId == m.Id && t.Status == taskDone })
	return over && w.running(m) == nil && !w.working(m)
}

// exitReport tells an agent's parent that the agent's process has ended, once until it runs again.
func (w *work) exitReport(m *roster.Member, status, output string, code int) {
	d := w.duty(m)
	if d.ExitReported {
		return
	}
	d.ExitReported = true
	reason := reasonOf(status, code)
	w.report(m, reason, reason, output)
}

// report sends a report to an agent's parent, and tells people.
func (w *work) report(m *roster.Member, what, status, output string) {
	parent := w.Roster.Find(m.ParentId)
	if parent == nil {
		return
	}
	var b strings.Builder
	b.WriteString("[Agent Report]")
	if t := w.running(m); t != nil {
		fmt.Fprintf(&b, " [%s]", t.Id)
	}
	fmt.Fprintf(&b, " %s %s.", m.Label(), what)
	if m.Task != "" {
		b.WriteString("\nTask: " + truncate.Characters(m.Task, reportedTask))
	}
	if m.SessionId != "" {
		b.WriteString("\nSession: " + m.SessionId)
	}
	if w.duty(m).Spoke {
		b.WriteString("\nThe agent sent messages itself.")
	}
	if output != "" {
		b.WriteString("\nOutput:\n" + last(output, reportedOutput))
	}
	if !view.Ended(parent.Status) {
		w.send(parent.Id, crewbody.Prompt{Text: b.String()})
	}
	w.say(m, parent, b.String())
	w.step.Event("agent:completion_reported", map[string]any{"childId": m.Id, "parentId": parent.Id, "status": status})
}

// attention tells people that something needs them.
func (w *work) attention(trigger, leadID string) {
	fields := map[string]any{"trigger": trigger}
	if leadID != "" {
		fields["leadId"] = leadID
	}
	w.step.Event("attention:changed", fields)
}

// last returns the last n characters of a text.
func last(text string, n int) string {
	runes := []rune(text)
	return string(runes[max(0, len(runes)-n):])
}
