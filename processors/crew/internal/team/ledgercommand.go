package team

import (
	"github.com/turntable-streams/turntable/processors/crew/internal/command"
)

// activity adds what an agent says that it did to the ledger.
func (w *work) activity(o order, c command.Activity) {
	action := c.ActionType
	if action == "" {
		action = "message_sent"
	}
	raw := c.Details
	if len(raw) > maxShown || len(raw) == 0 || raw[0] != '{' {
		raw = nil // details are an object
	}
	w.record(o.from, kept(action, maxID), c.Summary, raw)
}

// decided records a decision.
func (w *work) decided(o order, c command.Decision) {
	if w.propose(o.from, c.Title, c.Rationale, c.NeedsConfirmation, 0) == nil {
		w.refuse(o, "too many decisions are open")
	}
}

// requestLimit asks people for another limit of agents.
func (w *work) requestLimit(o order, c command.RequestLimitChange) {
	title := "Change the limit of agents"
	d := w.propose(o.from, title, c.Reason, true, c.Limit)
	if d == nil {
		w.refuse(o, "too many decisions are open")
		return
	}
	w.log(o.from, "limit_change_requested", title, details{"limit": c.Limit, "decisionId": d.Id})
	w.answer(o, "A person is asked whether the crew may have %d agents.", c.Limit)
}
