package delegation

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
	// Replied is a record of delegation-replies.
	Replied struct {
		*Record
		Reply topics.DelegationReply
	}
	// OutputArrived is a record of message-output: a turn has ended.
	OutputArrived struct {
		*Record
		Output topics.Output
	}
	// Controlled is a record of session-control.
	Controlled struct {
		*Record
		Control topics.Control
	}
	// PeerReplied is a record of peer-replies.
	PeerReplied struct {
		*Record
		Reply topics.PeerReply
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
	switch *e.Call.Name {
	case SendTool:
		t.called(e)
	case CancelTool:
		t.cancelled(e)
	}
}

func (e Replied) apply(t *transition) {
	if !e.tombstone() {
		t.replied(e)
	}
}

func (e OutputArrived) apply(t *transition) {
	if !e.tombstone() {
		t.returned(e)
		t.announced(e)
	}
}

// apply purges the session. Other controls are for the turn.
func (e Controlled) apply(t *transition) {
	if !e.tombstone() && e.Control.Action == topics.ActionPurge {
		t.purged(e)
	}
}

func (e PeerReplied) apply(t *transition) {
	if !e.tombstone() {
		t.peerReplied(e)
	}
}

func (DeadlineCame) apply(t *transition) {
	t.due()
	// The row is written even if nothing was due, because the rules changed or the clock was set back: a deadline fires
	// again only after its row was written.
	t.changed = t.changed || t.row.DeadlineMs != 0
}
