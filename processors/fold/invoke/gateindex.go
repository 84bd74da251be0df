package invoke

import (
	"container/list"
	"slices"
	"time"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// gateIndex is a table of the gates of interaction requests that were opened or decided lately, by session: the turn of each,
// and its outcome. It is bounded. It does no I/O and is not safe for concurrent use.
type gateIndex struct {
	lookback   time.Duration
	perSession int // maximum number of gates of a session
	total      int // maximum number of gates
	sessions   map[string][]*knownGate
	recent     *list.List // of *knownGate; the one without a record for the longest time first
}

// knownGate is a gate. outcome is nil while none was read.
type knownGate struct {
	session, gate, turn string
	touched             time.Time
	outcome             *topics.GateOutcome
	place               *list.Element
}

// sessionGates is how many gates of a session are indexed.
const sessionGates = 512

func newGateIndex(lookback time.Duration, perSession, total int) *gateIndex {
	return &gateIndex{
		lookback: lookback, perSession: perSession, total: total, sessions: map[string][]*knownGate{}, recent: list.New(),
	}
}

// add adds what a record states. Records can be added in any order and repeatedly; the first outcome of a gate counts.
func (x *gateIndex) add(g knownGate, now time.Time) {
	if g.touched.After(now) {
		g.touched = now
	}
	if !g.touched.After(now.Add(-x.lookback)) {
		return
	}
	known := x.find(g.session, g.gate)
	if known == nil {
		known = &knownGate{session: g.session, gate: g.gate, turn: g.turn}
		known.place = x.recent.PushBack(known)
		x.sessions[g.session] = append(x.sessions[g.session], known)
	}
	if known.outcome == nil {
		known.outcome = g.outcome
	}
	if g.touched.After(known.touched) {
		known.touched = g.touched
	}
	x.recent.MoveToBack(known.place)
	if len(x.sessions[g.session]) > x.perSession {
		x.remove(x.sessions[g.session][0])
	}
	for e := x.recent.Front(); e != nil; e = x.recent.Front() {
		oldest := e.Value.(*knownGate)
		if x.recent.Len() <= x.total && oldest.touched.After(now.Add(-x.lookback)) {
			return
		}
		x.remove(oldest)
	}
}

func (x *gateIndex) find(session, gate string) *knownGate {
	for _, g := range slices.Backward(x.sessions[session]) {
		if g.gate == gate {
			return g
		}
	}
	return nil
}

// turns returns the turns of a session's gates, those with open gates first, and the newest first of each.
func (x *gateIndex) turns(session string) []string {
	var list []string
	for _, open := range []bool{true, false} {
		for _, g := range slices.Backward(x.sessions[session]) {
			if (g.outcome == nil) == open && !slices.Contains(list, g.turn) {
				list = append(list, g.turn)
			}
		}
	}
	return list
}

func (x *gateIndex) remove(g *knownGate) {
	x.recent.Remove(g.place)
	gates := slices.DeleteFunc(x.sessions[g.session], func(o *knownGate) bool { return o == g })
	if x.sessions[g.session] = gates; len(gates) == 0 {
		delete(x.sessions, g.session)
	}
}

// gateIn returns what a record states about a gate of an interaction request; ok is false if it states nothing.
func gateIn(c *topics.Catalog, r processors.Inbound) (g knownGate, ok bool) {
	if r.Value == nil || len(r.Key) == 0 || len(r.Key) > maxIndexed {
		return g, false
	}
	g = knownGate{session: string(r.Key), touched: r.Timestamp}
	var call, session, turn string
	switch r.Topic {
	case c.GateRequests.Name():
		fields := topics.LookupAll(r.Value, "gate_id", "session_id", "call_id", "turn_id")
		g.gate, session, call, turn = indexed(fields[0]), indexed(fields[1]), textOf(fields[2]), textOf(fields[3])
	case c.GateOutcomes.Name():
		d := c.GateOutcomes.Codec().Unmarshal(r.Value)
		o := d.Value
		if d.Err != nil || o.Shadow {
			return g, false
		}
		g.gate, session, call, turn = o.GateID, o.SessionID, o.CallID, o.TurnID
		o.EffectiveArgs, o.Answer = nil, nil
		o.Reason = o.Reason[:min(len(o.Reason), maxIndexedError)]
		g.outcome = &o
	}
	if of, _, _, ok := folder.ParseGateCall(call); ok {
		turn = of
	}
	g.turn = turn // that of a gate which the turn itself has opened is in its record
	return g, turn != "" && session == g.session && len(turn) <= maxIndexed && g.gate == topics.GateID(session, turn, call)
}
