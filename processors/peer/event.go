package peer

import (
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// event is an input of apply: a record of an input topic, or a deadline of the row.
type event interface{ apply(t *transition) }

// record is a record of a topic of an agent.
type record struct {
	*machine.Record
	Agent string
}

// The events: one for each input topic, and one for deadlines.
type (
	// called is a record of tool-use.
	called struct {
		record
		Call topics.ToolUseItem
	}
	// commanded is a record of peer-commands.
	commanded struct {
		record
		Command topics.PeerCommand
	}
	// receipted is a record of peer-receipts.
	receipted struct {
		record
		Receipt topics.Receipt
	}
	// outputArrived is a record of message-output: a turn has ended.
	outputArrived struct {
		record
		Output topics.Output
	}
	// gateAsked is a record of gate-requests.
	gateAsked struct {
		record
		Request topics.GateRequest
	}
	// gateEnded is a record of gate-outcomes.
	gateEnded struct {
		record
		Outcome topics.GateOutcome
	}
	// controlled is a record of session-control.
	controlled struct {
		record
		Control topics.Control
	}
	// deadlineCame states that the row's earliest deadline (State.DeadlineMs) has passed.
	deadlineCame struct{}
)

func (e called) apply(t *transition) {
	if e.Tombstone() || e.Call.Name == nil {
		return
	}
	if *e.Call.Name == ToolName {
		t.called(e)
	}
	t.toolUsed(e)
}

func (e commanded) apply(t *transition) {
	if e.Tombstone() {
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
		t.DeadLetter(reasonCommand)
	}
}

func (e receipted) apply(t *transition) {
	if !e.Tombstone() {
		t.receipted(e)
	}
}

// apply ends the run of the turn, and the tasks that the turn has delegated.
func (e outputArrived) apply(t *transition) {
	if !e.Tombstone() {
		t.turnEnded(e)
		t.answered(e)
	}
}

func (e gateAsked) apply(t *transition) {
	if !e.Tombstone() {
		t.gateAsked(e)
	}
}

func (e gateEnded) apply(t *transition) {
	if !e.Tombstone() {
		t.gateEnded(e)
	}
}

// apply purges the session. To cancel a turn is the turn's task, whose output then ends the tasks and the run.
func (e controlled) apply(t *transition) {
	if !e.Tombstone() && e.Control.Action == topics.ActionPurge {
		t.purgeTasks(e.Agent)
		t.purgeRun(e.Agent)
	}
}

func (deadlineCame) apply(t *transition) {
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
