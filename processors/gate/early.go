package gate

import (
	"bytes"
	"slices"

	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// hold stores a record until the request of its gate arrives. A repeat is held once.
func (t *transition) hold(h *gaterow.Held, r *machine.Record) {
	if slices.ContainsFunc(t.row.Early, func(o *gaterow.Held) bool {
		return o.GateId == h.GateId && o.Withdrawn == h.Withdrawn && bytes.Equal(o.Value, h.Value)
	}) {
		return
	}
	wait := t.config.Hold
	if h.Value == nil {
		wait = t.config.RememberFor
	}
	h.Value = bytes.Clone(h.Value) // the row outlives the record
	h.AtMs, h.ExpiresMs = t.timeOf(r), t.now.Add(wait).UnixMilli()
	t.row.Early = append(t.row.Early, h)
	if len(t.row.Early) > maxEarly || len(h.Value) > maxValue+maxText || !t.makeRoom(rowReserve+noRoomReserve) {
		t.row.Early = t.row.Early[:len(t.row.Early)-1]
		t.deadLetter(reasonNoRoom)
		return
	}
	t.changed = true
}

// applyEarly applies the records that were held for a gate that has opened, in their order.
func (t *transition) applyEarly(id string) {
	var held []*gaterow.Held
	t.row.Early = slices.DeleteFunc(t.row.Early, func(h *gaterow.Held) bool {
		if h.GateId == id {
			held = append(held, h)
		}
		return h.GateId == id
	})
	for _, h := range held {
		g := t.find(id)
		if g == nil {
			return
		}
		t.replaying = h
		if h.Withdrawn != "" {
			t.askClose(g, topics.GateCause(h.Withdrawn), "")
		} else if d, err := topics.DecodeGateDecision(h.Value); err == nil {
			t.decide(nil, d)
		} else { // the row is damaged: the record was readable when it was held
			t.deadLetter(reasonBroken)
		}
		t.replaying = nil
	}
}

// expireEarly gives up records whose request did not arrive in time.
func (t *transition) expireEarly() {
	t.row.Early = slices.DeleteFunc(t.row.Early, func(h *gaterow.Held) bool {
		expired := h.ExpiresMs <= t.due
		if expired {
			t.giveUp(h, reasonNoRequest)
		}
		return expired
	})
}

// giveUp dead-letters a held decision. Withdrawals and closes decide nothing about a gate that does not exist.
func (t *transition) giveUp(h *gaterow.Held, reason string) {
	t.changed = true
	if d, err := topics.DecodeGateDecision(h.Value); h.Withdrawn != "" || err == nil && d.Verdict == topics.VerdictClose {
		return
	}
	t.DeadLetterHeld(letterOf(h, reason))
}
