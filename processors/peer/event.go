package peer

import (
	"time"

	"github.com/turntable-streams/turntable/topics"
)

// Event is an input of Apply: a record of an input topic, or a deadline of the row.
type Event interface {
	session() string
	apply(t *transition)
}

// Record describes the record of an event. Apply only reads it.
type Record struct {
	// Session is the session ID: the record's key and the key of the row.
	Session string
	// ID is the record's turntable.id header, or a digest that distinguishes it from all other records if it has none.
	ID string
	// Agent is the agent whose topic the record is of.
	Agent string
	// At is the record's timestamp. A time more than a minute after now, or none, counts as now.
	At time.Time
	// Value is the record's value; nil for a tombstone.
	Value []byte
}

func (r *Record) session() string { return r.Session }
func (r *Record) tombstone() bool { return r.Value == nil }

// The events: one for each input topic, and one for deadlines.
type (
	// Called is a record of tool-use.
	Called struct {
		*Record
		Call topics.ToolUseItem
	}
	// Commanded is a record of peer-commands.
	Commanded struct {
		*Record
		Command topics.PeerCommand
	}
	// Receipted is a record of peer-receipts.
	Receipted struct {
		*Record
		Receipt topics.Receipt
	}
	// OutputArrived is a record of message-output: a turn has ended.
	OutputArrived struct {
		*Record
		Output topics.Output
	}
	// GateAsked is a record of gate-requests.
	GateAsked struct {
		*Record
		Request topics.GateRequest
	}
	// GateEnded is a record of gate-outcomes.
	GateEnded struct {
		*Record
		Outcome topics.GateOutcome
	}
	// Controlled is a record of session-control.
	Controlled struct {
		*Record
		Control topics.Control
	}
	// DeadlineCame states that the row's earliest deadline (State.DeadlineMs) has passed.
	DeadlineCame struct {
		Session string
	}
)

func (d DeadlineCame) session() string { return d.Session }

func (e Called) apply(t *transition) {
	if e.tombstone() || e.Call.Name == nil {
		return
	}
	if *e.Call.Name == ToolName {
		t.called(e)
	}
	t.toolUsed(e)
}

func (e Commanded) apply(t *transition) {
	if e.tombstone() {
		return
	}
	c := e.Command
	outbound := c.PeerID != ""
	switch c.Kind {
	case topics.PeerDelegate:
		t.delegated(e)
	case topics.PeerSettle:
		t.settled(e)
	case topics.PeerRun:
		t.accepted(e)
	case topics.PeerEnd:
		t.ended(e)
	case topics.PeerAsk:
		if outbound {
			t.askedTask(e)
		} else {
			t.askedRun(e)
		}
	case topics.PeerLeave:
		if outbound {
			t.leftTask(e)
		} else {
			t.leftRun(e)
		}
	case topics.PeerCancel:
		if outbound {
			t.cancelledTask(e)
		} else {
			t.cancelledRun(e)
		}
	case topics.PeerGrant:
		t.granted(e)
	case topics.PeerRevoke:
		t.revoked(e)
	case topics.PeerClaim:
		t.claimed(e)
	case topics.PeerClaimed:
		t.claimAnswered(e)
	default:
		t.deadLetter(reasonCommand)
	}
}

func (e Receipted) apply(t *transition) {
	if !e.tombstone() {
		t.receipted(e)
	}
}

// apply ends the run of the turn, and the tasks that the turn has delegated.
func (e OutputArrived) apply(t *transition) {
	if !e.tombstone() {
		t.turnEnded(e)
		t.answered(e)
	}
}

func (e GateAsked) apply(t *transition) {
	if !e.tombstone() {
		t.gateAsked(e)
	}
}

func (e GateEnded) apply(t *transition) {
	if !e.tombstone() {
		t.gateEnded(e)
	}
}

// apply purges the session. To cancel a turn is the turn's task, whose output then ends the tasks and the run.
func (e Controlled) apply(t *transition) {
	if !e.tombstone() && e.Control.Action == topics.ActionPurge {
		t.purgeTasks(e.Record)
		t.purgeRun(e.Record)
	}
}

func (DeadlineCame) apply(t *transition) {
	t.tasksDue()
	t.runDue()
	t.approvalsDue()
	if at, ok := t.idleEnd(); ok && at <= t.nowMS() {
		t.changed, t.erased = true, true
	}
	// The row is written even if nothing was due, because the rules changed or the clock was set back: a deadline fires
	// again only after its row was written.
	t.changed = t.changed || t.row.DeadlineMs != 0
}
