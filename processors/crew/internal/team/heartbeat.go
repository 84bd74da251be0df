package team

import (
	"fmt"
	"time"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/command"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

const (
	// nudgeEvery is how long a lead is idle while nothing moves before it is reminded.
	nudgeEvery = 2 * time.Minute
	// stalledNudges is the reminder from which people are told, and maxNudges how many there are until something moves.
	stalledNudges = 5
	maxNudges     = 12
)

// nudge reminds leads whose agents all wait while work is left. The second three reminders come half as often, the others a
// third as often.
func (w *work) nudge() {
	for _, m := range w.Roster.Members {
		d := w.duty(m)
		if !m.Lead || d.HeartbeatHalted || d.Nudges >= maxNudges || !w.stalled(m) {
			d.NudgeMs = 0
			continue
		}
		if d.NudgeMs == 0 {
			d.NudgeMs = w.now() + d.interval()
			continue
		}
		if d.NudgeMs > w.now() {
			continue
		}
		d.Nudges++
		d.NudgeMs = w.now() + d.interval()
		w.send(m.Id, crewbody.Prompt{Text: fmt.Sprintf("[System] All your agents are idle, and work is left: %s Go on, or stop these reminders "+
			"with ⟦⟦ HALT_HEARTBEAT ⟧⟧.", w.whatIsLeft(m))})
		if d.Nudges >= stalledNudges {
			w.step.Event("lead:stalled", map[string]any{
				"leadId": m.Id, "nudgeCount": d.Nudges, "idleDuration": w.now() - d.IdleMs,
			})
		}
	}
}

// interval is the time to the next reminder in milliseconds.
func (d *Duty) interval() int64 { return nudgeEvery.Milliseconds() * int64(min(d.Nudges/3+1, 3)) }

// stalled reports whether a lead is idle, none of its agents works, and something is left to do.
func (w *work) stalled(lead *roster.Member) bool {
	children := w.Roster.Children(lead.Id)
	if lead.Status != view.Idle || len(children) == 0 {
		return false
	}
	for _, c := range children {
		if c.Status == view.Running || c.Status == view.Creating {
			return false
		}
	}
	open := w.delegates(lead)
	for _, t := range w.tasksOf(lead.Id) {
		switch t.Status {
		case taskRunning:
			return false
		case taskPending, taskReady, taskBlocked, taskFailed, taskInReview:
			open = true
		}
	}
	return open
}

// whatIsLeft says what is left for a lead.
func (w *work) whatIsLeft(lead *roster.Member) string {
	if d := w.digest(lead.Id); d != nil {
		return d.Summary + "."
	}
	return "some delegations have not ended."
}

// moved forgets the reminders of a lead: something has happened.
func (w *work) moved(leadID string) {
	if lead := w.Roster.Find(leadID); lead != nil {
		d := w.duty(lead)
		d.Nudges, d.NudgeMs = 0, 0
	}
}

// haltHeartbeat stops the reminders of a lead, or lets them come again.
func (w *work) haltHeartbeat(o order, _ command.Nothing) {
	d, halted := w.duty(o.from), o.name == "HALT_HEARTBEAT"
	d.HeartbeatHalted, d.Nudges, d.NudgeMs = halted, 0, 0
	if halted {
		w.log(o.from, "heartbeat_halted", "Reminders are halted", nil)
		w.answer(o, "You get no reminders until RESUME_HEARTBEAT.")
		return
	}
	w.answer(o, "You get reminders again.")
}
