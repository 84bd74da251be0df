package peer

import (
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/rows/peerrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// The order of records in one partition, that of the session in peer-commands, decides how a task ends. The group therefore
// does not end a task itself when a receipt, an output, a deadline or a purge ends it. It writes a settle (a task that is
// delegated) or an end (the task of a peer) to peer-commands, and the task ends when the first of them is read. If the group
// ended the task directly, a crash after the reply was sent, but before the row was, could end the task twice in different
// ways: after the restart, deadlines and the records of other topics may come in another order.

// apply is the state machine of tasks: it applies an event to the row of its session. A nil state is a session without a
// row. apply modifies the state that it is given, so the caller must not use it afterwards; it only reads the event.
// config.Settings is called once at most, and only for events that need it. apply is deterministic: equal
// arguments and equal configurations give equal results.
//
// An event that was applied before begins no task and ends none.
func apply(
	state *peerrow.State, session string, e event, now time.Time, to catalogs, config Config,
) machine.Outcome[*peerrow.State] {
	t := &transition{row: state, key: session, now: now, catalogs: to, config: config}
	if t.row == nil {
		t.row = &peerrow.State{Version: peerrow.Version}
	}
	e.apply(t)
	switch {
	case !t.changed:
		return machine.Outcome[*peerrow.State]{Effects: t.List()}
	case t.erased:
		return machine.Outcome[*peerrow.State]{Changed: state != nil, Effects: t.List()}
	}
	if _, timer := e.(deadlineCame); !timer {
		t.row.TouchedMs = t.nowMS()
	}
	t.row.DeadlineMs = t.deadline()
	return machine.Outcome[*peerrow.State]{Row: t.row, Changed: true, Effects: t.List()}
}

// catalogs are the topics that a group writes to.
type catalogs struct {
	own    topics.Catalog                 // of the group's agent
	agents map[string]topics.Catalog      // of all agents of the instance
	events topics.Topic[topics.PeerAudit] // what the ChainGraph of the instance reads
}

// agent returns the topics of an agent of the instance. One that is no longer configured gets no record: the task that it belongs to
// ends at its deadline.
func (t *transition) agent(name string) (topics.Catalog, bool) {
	catalog, ok := t.agents[name]
	if !ok {
		t.Warn("a task is of an agent that is not in Config.Agents; it ends at its deadline")
	}
	return catalog, ok
}

// transition is a session's row while one event is applied to it.
type transition struct {
	machine.Effects
	catalogs
	row      *peerrow.State
	key      string    // the session ID
	settings *Settings // what current returned, nil before
	now      time.Time
	config   Config
	changed  bool // the row must be written
	erased   bool // the row must be deleted
}

// configuration returns the configuration in force. It is the same for the whole event, also if the file changes meanwhile.
func (t *transition) configuration() *Settings {
	if t.settings == nil {
		t.settings = t.config.Settings()
	}
	return t.settings
}

func (t *transition) nowMS() int64 { return t.now.UnixMilli() }

// timeOf returns the time of a record. It is the record's timestamp, which is the same if the record is read again, unless it
// is unusable.
func (t *transition) timeOf(r *machine.Record) time.Time {
	if r.At.UnixMilli() > 0 && !r.At.After(t.now.Add(maxAhead)) {
		return r.At
	}
	return t.now
}

// room reports whether so many bytes fit into the row, beside the reply of a run that has none yet and what open tasks may
// need. It forgets tasks that have ended for them, oldest first.
func (t *transition) room(bytes int) bool {
	for proto.Size(t.row)+t.runReserve()+t.taskReserves()+bytes > t.config.RowLimit {
		if !t.forgetTask() {
			return false
		}
	}
	return true
}

// deadline returns the earliest deadline of the row in milliseconds since the epoch, 0 if it has none.
func (t *transition) deadline() int64 {
	earliest := int64(0)
	add := func(at int64) {
		if at = max(at, 1); earliest == 0 || at < earliest {
			earliest = at
		}
	}
	t.taskDeadlines(add)
	t.runDeadlines(add)
	t.approvalDeadlines(add)
	if at, ok := t.idleEnd(); ok {
		add(at)
	}
	return earliest
}

// idleEnd returns when a row that holds nothing is deleted. ok is false for any other row.
func (t *transition) idleEnd() (at int64, ok bool) {
	if len(t.row.Tasks) > 0 || t.row.Run != nil || t.row.Early != nil || len(t.row.Approvals)+len(t.row.Refused) > 0 {
		return 0, false
	}
	return t.row.TouchedMs, true
}
