package delegation

import (
	"slices"
	"time"

	"github.com/turntable-streams/turntable/internal/rows/delegationrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// The order of records in one partition, that of the session in delegation-replies, decides how a delegation ends. The group
// therefore does not end a delegation itself when its deadline passes, a call cancels it or a purge ends it. It writes a reply
// to delegation-replies, as the agent that ran the task does, and the delegation ends when the first of them is read. If the
// group ended the delegation directly, a crash after the callback message was sent, but before the row was, could end it twice
// in different ways: after the restart, deadlines and the records of other topics may come in another order.

// apply is the state machine of delegations: it applies an event to the row of its session. A nil state is a session without a
// row. apply modifies the state that it is given, so the caller must not use it afterwards; it only reads the event.
// own has the topics of the agent, agents those of config.Agents. config is complete; its Prompts are called only when a result is
// announced. apply is deterministic: equal arguments and equal prompts give equal results.
//
// An event that was applied before begins no delegation and ends none.
func apply(
	state *delegationrow.State, session string, e event, now time.Time, own topics.Catalog, agents map[string]topics.Catalog, config Config,
) machine.Outcome[*delegationrow.State] {
	t := &transition{row: state, key: session, now: now, topics: own, agents: agents, config: config}
	if t.row == nil {
		t.row = &delegationrow.State{Version: delegationrow.Version}
	}
	e.apply(t)
	switch {
	case !t.changed:
		return machine.Outcome[*delegationrow.State]{Effects: t.List()}
	case t.isEmpty():
		return machine.Outcome[*delegationrow.State]{Changed: state != nil, Effects: t.List()}
	}
	t.row.DeadlineMs = t.deadline()
	return machine.Outcome[*delegationrow.State]{Row: t.row, Changed: true, Effects: t.List()}
}

// transition is a session's row while one event is applied to it.
type transition struct {
	machine.Effects
	row     *delegationrow.State
	key     string // the session ID
	now     time.Time
	topics  topics.Catalog            // of the agent
	agents  map[string]topics.Catalog // of those in config.Agents
	config  Config
	changed bool // the row must be written
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

// isEmpty reports whether the row holds nothing and is deleted.
func (t *transition) isEmpty() bool {
	r := t.row
	return len(r.Tasks) == 0 && len(r.Pending) == 0 && r.InFlight == nil && len(r.Early) == 0 && len(r.Answered) == 0
}

// find returns the delegation that replies name so, nil if there is none.
func (t *transition) find(id string) *delegationrow.Task {
	return t.first(func(x *delegationrow.Task) bool { return x.Id == id })
}

// named returns the delegation with a callback ID, nil if there is none.
func (t *transition) named(callbackID string) *delegationrow.Task {
	return t.first(func(x *delegationrow.Task) bool { return x.CallbackId == callbackID })
}

func (t *transition) first(is func(*delegationrow.Task) bool) *delegationrow.Task {
	if i := slices.IndexFunc(t.row.Tasks, is); i >= 0 {
		return t.row.Tasks[i]
	}
	return nil
}

// isOpen reports whether a delegation has not ended.
func isOpen(x *delegationrow.Task) bool { return x.Phase != delegationrow.Task_ENDED }

func (t *transition) openTasks() (n int) {
	for _, x := range t.row.Tasks {
		if isOpen(x) {
			n++
		}
	}
	return n
}
