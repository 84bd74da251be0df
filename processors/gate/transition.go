package gate

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// The order of records in one partition, that of the session in gate-decisions, decides how a gate ends. The group therefore
// does not end a gate itself at its deadline, for a withdrawal, at a purge, because of a grant, or without room. It writes a record with the
// verdict close to gate-decisions, and the gate ends when that record is read, unless a decision precedes it. If the group
// ended the gate directly, a crash after the outcome was sent, but before the row was, could end the gate twice in different
// ways: after the restart, deadlines and the records of other topics may come in another order.

// grantsOf returns the row of an agent's standing approvals, nil if it has none. The row may be stale.
type grantsOf func(agent string) *gaterow.Grants

// apply is the state machine of gates: it applies an event to the row of a session. A nil state is a session without a
// row. It modifies the state that it is given, so the caller must not use it afterwards; it only reads the event. It is
// deterministic: equal arguments and equal answers of standing give equal results.
//
// An event that was applied before changes no gate and ends none.
func apply(
	state *gaterow.State, session string, e event, standing grantsOf, now time.Time, catalog topics.Catalog, config Config,
) machine.Outcome[*gaterow.State] {
	t := &transition{row: state, key: session, standing: standing, now: now, topics: catalog, config: config}
	if d, timer := e.(deadlineCame); timer {
		t.due = machine.Through(d.read, now)
	}
	if t.row == nil {
		t.row = &gaterow.State{Version: rowVersion}
	}
	e.apply(t)
	t.closeDue()
	switch {
	case !t.changed:
		return machine.Outcome[*gaterow.State]{Effects: t.List()}
	case t.erased:
		return machine.Outcome[*gaterow.State]{Changed: state != nil, Effects: t.List()}
	}
	if _, timer := e.(deadlineCame); !timer {
		t.row.TouchedMs = t.nowMS()
	}
	t.trim()
	t.row.DeadlineMs, t.row.Version = t.deadline(), formatOf(t.row)
	return machine.Outcome[*gaterow.State]{Row: t.row, Changed: true, Effects: t.List()}
}

// transition is a session's row while one event is applied to it.
type transition struct {
	machine.Effects
	row       *gaterow.State
	key       string // the session ID
	standing  grantsOf
	now       time.Time
	due       int64          // what is held is given up if it expires until then, in milliseconds since the epoch; 0 for records
	topics    topics.Catalog // of the agent of requests that name none
	config    Config
	changed   bool          // the row must be written
	erased    bool          // the row must be deleted
	replaying *gaterow.Held // the held record that is being applied
}

// deadLetter sends the record that is applied to the dead-letter topic: that of the event, or one that was held.
func (t *transition) deadLetter(reason string) {
	if t.replaying != nil {
		t.DeadLetterHeld(letterOf(t.replaying, reason))
		return
	}
	t.DeadLetter(reason)
}

func letterOf(h *gaterow.Held, reason string) processors.Letter {
	return processors.Letter{Topic: h.Topic, Partition: h.Partition, Offset: h.Offset, Value: h.Value, Reason: reason}
}

func (t *transition) nowMS() int64 { return t.now.UnixMilli() }

// timeOf returns the time of a record in milliseconds since the epoch. It is the record's timestamp, which is the same if the
// record is read again, unless it is unusable.
func (t *transition) timeOf(r *machine.Record) int64 {
	if t.replaying != nil {
		return t.replaying.AtMs
	}
	if at := r.At.UnixMilli(); at > 0 && at <= t.now.Add(maxAhead).UnixMilli() {
		return at
	}
	return t.nowMS()
}

// find returns the open gate with an ID, nil if there is none.
func (t *transition) find(id string) *gaterow.Gate { return findIn(t.row.Open, id) }

func findIn(gates []*gaterow.Gate, id string) *gaterow.Gate {
	for _, g := range gates {
		if g.Id == id {
			return g
		}
	}
	return nil
}

// ended reports whether a gate had its outcome.
func (t *transition) ended(id string) bool {
	return findIn(t.row.Closed, id) != nil || t.memory().Has(t.row.Remembered, gaterow.EndedDigest(id))
}

// rowReserve is kept free for what every event adds to the row: digests, outcomes, grants, deadlines.
const rowReserve = 16 << 10

// noRoomReserve is kept free for the gates that are stored without their request (see noroom.go).
const noRoomReserve = 16 << 10

// makeRoom forgets the outcomes of ended gates, oldest first, until so many bytes of the row are free. It returns false if
// they are not free even without the outcomes.
func (t *transition) makeRoom(free int) bool {
	for proto.Size(t.row) > t.config.RowLimit-free {
		if len(t.row.Closed) == 0 {
			return false
		}
		t.forgetOutcome()
	}
	return true
}

// forgetOutcome replaces the outcome of the gate that ended first by a digest.
func (t *transition) forgetOutcome() {
	t.rememberEnded(t.row.Closed[0].Id)
	t.row.Closed = slices.Delete(t.row.Closed, 0, 1)
	t.changed = true
}

func (t *transition) rememberEnded(id string) {
	t.row.Remembered = t.memory().Add(t.row.Remembered, gaterow.EndedDigest(id))
	t.changed = true
}

// trim brings a row below Config.RowLimit in every case: it forgets outcomes, then the older half of the digests, then gives
// up held records, then drops grants, then refuses the newest gates, then ends them. Kafka would reject a larger row, on
// every restart again.
func (t *transition) trim() {
	for proto.Size(t.row) > t.config.RowLimit {
		switch {
		case len(t.row.Closed) > 0:
			t.forgetOutcome()
		case len(t.row.Remembered) >= 2*machine.DigestSize:
			t.row.Remembered = machine.Half(t.row.Remembered)
		case len(t.row.Early) > 0:
			last := len(t.row.Early) - 1
			t.giveUp(t.row.Early[last], reasonNoRoom)
			t.row.Early = t.row.Early[:last]
		case len(t.row.Grants) > 0:
			t.row.Grants = t.row.Grants[1:]
		case t.newestDecidable() != nil:
			t.refuse(t.newestDecidable())
		case len(t.row.Open) > 0:
			t.end(t.row.Open[len(t.row.Open)-1], closed(topics.CauseNoRoom, t.nowMS()))
		default:
			return
		}
	}
}
