package gate

import (
	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/topics"
)

// A gate for which the row has no room is stored without its request, so that a record on gate-decisions can end it as it
// ends all others. No one can decide about such a gate: it has no arguments that a person, or the policy, could judge.

// refuse drops what the outcome of a gate does not need, and asks to close the gate with the cause no_room.
func (t *transition) refuse(g *gaterow.Gate) {
	t.changed, g.NoRoom = true, true
	g.Args, g.Message, g.Options, g.ResponseSchema, g.Allowed = nil, "", nil, nil, nil
	g.Agent, g.ParentGateId, g.Via, g.Channel = "", "", "", nil
	t.askClose(g, topics.CauseNoRoom, "")
}

// fits reports whether there is room for all open gates with their requests. If not, it may have forgotten all outcomes.
func (t *transition) fits() bool {
	return len(t.row.Open)-t.undecidable() <= t.config.OpenLimit && t.makeRoom(rowReserve+noRoomReserve)
}

// refusable reports whether there is room for one gate more without its request.
func (t *transition) refusable() bool {
	return t.undecidable() <= maxNoRoom && t.makeRoom(rowReserve)
}

// undecidable returns how many open gates are stored without their request.
func (t *transition) undecidable() (n int) {
	for _, g := range t.row.Open {
		if g.NoRoom {
			n++
		}
	}
	return n
}

// newestDecidable returns the open gate that was opened last and is stored with its request, nil if there is none.
func (t *transition) newestDecidable() *gaterow.Gate {
	for i := len(t.row.Open) - 1; i >= 0; i-- {
		if g := t.row.Open[i]; !g.NoRoom {
			return g
		}
	}
	return nil
}
