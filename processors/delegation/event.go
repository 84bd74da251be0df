package delegation

import (
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// event is an input of apply: a record of an input topic, or a deadline of the row.
type event interface{ apply(t *transition) }

// The events: one for each input topic, and one for deadlines.
type (
	// called is a record of tool-use.
	called struct {
		*machine.Record
		Call topics.ToolUseItem
	}
	// replied is a record of delegation-replies.
	replied struct {
		*machine.Record
		Reply topics.DelegationReply
	}
	// outputArrived is a record of message-output: a turn has ended.
	outputArrived struct {
		*machine.Record
		Output topics.Output
	}
	// controlled is a record of session-control.
	controlled struct {
		*machine.Record
		Control topics.Control
	}
	// peerReplied is a record of peer-replies.
	peerReplied struct {
		*machine.Record
		Reply topics.PeerReply
	}
	// deadlineCame states that the row's earliest deadline (State.DeadlineMs) has passed.
	deadlineCame struct{}
)

func (e called) apply(t *transition) {
	if e.Tombstone() || e.Call.Name == nil {
		return
	}
	switch *e.Call.Name {
	case SendTool:
		t.called(e)
	case CancelTool:
		t.cancelled(e)
	}
}

func (e replied) apply(t *transition) {
	if !e.Tombstone() {
		t.replied(e)
	}
}

func (e outputArrived) apply(t *transition) {
	if !e.Tombstone() {
		t.returned(e)
		t.announced(e)
	}
}

// apply purges the session. Other controls are for the turn.
func (e controlled) apply(t *transition) {
	if !e.Tombstone() && e.Control.Action == topics.ActionPurge {
		t.purged(e)
	}
}

func (e peerReplied) apply(t *transition) {
	if !e.Tombstone() {
		t.peerReplied(e)
	}
}

func (deadlineCame) apply(t *transition) {
	t.due()
	// The row is written even if nothing was due, because the rules changed or the clock was set back: a deadline fires
	// again only after its row was written.
	t.changed = t.changed || t.row.DeadlineMs != 0
}
