package delegation

import (
	"time"

	"github.com/turntable-streams/turntable/topics"
)

// event is an input of apply: a record of an input topic, or a deadline of the row.
type event interface {
	session() string
	apply(t *transition)
}

// record describes the record of an event. apply only reads it.
type record struct {
	// Session is the session ID: the record's key and the key of the row.
	Session string
	// ID is the record's turntable.id header, or a digest that distinguishes it from all other records if it has none.
	ID string
	// At is the record's timestamp. A time more than a minute after now, or none, counts as now.
	At time.Time
	// Value is the record's value; nil for a tombstone.
	Value []byte
}

func (r *record) session() string { return r.Session }
func (r *record) tombstone() bool { return r.Value == nil }

// The events: one for each input topic, and one for deadlines.
type (
	// called is a record of tool-use.
	called struct {
		*record
		Call topics.ToolUseItem
	}
	// replied is a record of delegation-replies.
	replied struct {
		*record
		Reply topics.DelegationReply
	}
	// outputArrived is a record of message-output: a turn has ended.
	outputArrived struct {
		*record
		Output topics.Output
	}
	// controlled is a record of session-control.
	controlled struct {
		*record
		Control topics.Control
	}
	// peerReplied is a record of peer-replies.
	peerReplied struct {
		*record
		Reply topics.PeerReply
	}
	// deadlineCame states that the row's earliest deadline (State.DeadlineMs) has passed.
	deadlineCame struct {
		Session string
	}
)

func (d deadlineCame) session() string { return d.Session }

func (e called) apply(t *transition) {
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

func (e replied) apply(t *transition) {
	if !e.tombstone() {
		t.replied(e)
	}
}

func (e outputArrived) apply(t *transition) {
	if !e.tombstone() {
		t.returned(e)
		t.announced(e)
	}
}

// apply purges the session. Other controls are for the turn.
func (e controlled) apply(t *transition) {
	if !e.tombstone() && e.Control.Action == topics.ActionPurge {
		t.purged(e)
	}
}

func (e peerReplied) apply(t *transition) {
	if !e.tombstone() {
		t.peerReplied(e)
	}
}

func (deadlineCame) apply(t *transition) {
	t.due()
	// The row is written even if nothing was due, because the rules changed or the clock was set back: a deadline fires
	// again only after its row was written.
	t.changed = t.changed || t.row.DeadlineMs != 0
}
