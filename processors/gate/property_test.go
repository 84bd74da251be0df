package gate

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/topics"
)

// simulation is one session's partition of each input topic, and the group that reads them in any order. Records stay where
// they are when the group crashes; the row and the positions return to those of the last cut.
type simulation struct {
	*harness
	logs     [3][]Event // requests, decisions, controls
	next     [3]int     // position in each log
	saved    []byte     // the row of the last cut
	savedAt  [3]int     // and its positions
	crashes  int
	outcomes map[string][]topics.GateOutcome // all that were ever sent, by gate
	accepted map[string]bool                 // gates whose request was read
	full     bool                            // see newFullSimulation
}

const (
	logRequests = iota
	logDecisions
	logControls
)

func newSimulation(t tb) *simulation {
	p := newHarness(t, func(r *Rules) {
		r.HoldFor, r.RememberFor = 1000*24*time.Hour, 1000*24*time.Hour // what is forgotten may end again
		r.SessionGrant = time.Hour
		r.Policy = approval.Policy{TTL: time.Minute, Rules: []approval.Rule{
			{Tool: "look", Effect: approval.Allow},
			{Tool: "drop", Effect: approval.Deny},
		}}
	})
	return &simulation{harness: p, outcomes: map[string][]topics.GateOutcome{}, accepted: map[string]bool{}}
}

// newFullSimulation returns a simulation with room for one gate. There are no grants, and people decide only about gates that
// they saw in a row that survives crashes.
func newFullSimulation(t tb) *simulation {
	w := newSimulation(t)
	w.rules.OpenLimit, w.full = 1, true
	return w
}

// visible reports whether a person may decide about a gate.
func (w *simulation) visible(id string) bool {
	if !w.full {
		return true
	}
	s, err := DecodeState(w.saved)
	require.NoError(w.tb, err)
	return slices.ContainsFunc(Gates(w.key, s), func(v View) bool { return v.GateID == id && v.Outcome == nil })
}

func (w *simulation) write(log int, e Event) { w.logs[log] = append(w.logs[log], e) }

// read applies the next record of a log, if there is one.
func (w *simulation) read(log int) {
	if w.next[log] == len(w.logs[log]) {
		return
	}
	e := w.logs[log][w.next[log]]
	w.next[log]++
	if r, ok := e.(Requested); ok && r.Request.Withdrawn == "" {
		w.accepted[r.Request.GateID] = true
	}
	w.send(w.handle(e))
}

// send keeps outcomes, and appends closes to the log of decisions.
func (w *simulation) send(es effects) {
	for _, e := range es {
		m, ok := e.(Emit)
		if !ok {
			continue
		}
		switch v := m.Value.(type) {
		case CloseAsked:
			w.write(logDecisions, w.decided(topics.GateDecision(v)))
		case GateEnded:
			require.Equal(w.tb, v.GateID+"/outcome", m.ID)
			w.outcomes[v.GateID] = append(w.outcomes[v.GateID], topics.GateOutcome(v))
		}
	}
}

// wait moves the clock by d and fires the deadline of the row if it is due.
func (w *simulation) wait(d time.Duration) {
	w.now = w.now.Add(d)
	if s := w.state(); s != nil && s.DeadlineMs <= w.now.UnixMilli() {
		w.send(w.handle(DeadlineCame{w.key}))
	}
}

func (w *simulation) cut() { w.saved, w.savedAt = bytes.Clone(w.row), w.next }

func (w *simulation) crash() {
	w.row, w.next = bytes.Clone(w.saved), w.savedAt
	w.crashes++
}

var (
	gateIDs = []string{"g0", "g1", "g2", "g3"}
	tools   = []string{"pay", "pay", "pay", "sail", "look", "drop"}
)

// move makes one random move.
func (w *simulation) move(t *rapid.T, moves []string) {
	id := rapid.SampledFrom(gateIDs).Draw(t, "gate")
	switch move := rapid.SampledFrom(moves).Draw(t, "move"); move {
	case "request":
		w.write(logRequests, w.request(id, func(r *topics.GateRequest) {
			r.Tool = rapid.SampledFrom(tools).Draw(t, "tool")
			r.Effect = rapid.SampledFrom([]string{"", "ask"}).Draw(t, "effect")
			r.Shadow = rapid.IntRange(0, 9).Draw(t, "shadow") == 0
			r.Dangerous = rapid.IntRange(0, 4).Draw(t, "dangerous") == 0
		}))
	case "decide":
		if !w.visible(id) {
			break
		}
		verdict := rapid.SampledFrom([]topics.GateVerdict{topics.VerdictApprove, topics.VerdictDeny}).Draw(t, "verdict")
		w.write(logDecisions, w.decision(id, fmt.Sprint("d", w.offset), verdict, func(d *topics.GateDecision) {
			if verdict == topics.VerdictApprove && !w.full {
				d.Scope = rapid.SampledFrom([]topics.GateScope{"", "", topics.ScopeSession, topics.ScopeAgent}).Draw(t, "scope")
			}
			if rapid.IntRange(0, 4).Draw(t, "malformed") == 0 {
				d.ArgsSHA256 = "00"
			}
		}))
	case "revoke":
		w.write(logDecisions, w.decision(id, fmt.Sprint("r", w.offset), topics.VerdictRevoke))
	case "withdraw":
		w.write(logRequests, w.withdrawal(id, topics.CauseParentEnded))
	case "purge":
		w.write(logControls, w.control(topics.ActionPurge))
	case "again":
		log := rapid.IntRange(0, 2).Draw(t, "log")
		if n := w.next[log]; n > 0 {
			w.send(w.handle(w.logs[log][rapid.IntRange(0, n-1).Draw(t, "record")]))
		}
	case "wait":
		w.wait(rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, 59 * time.Second, time.Minute}).Draw(t, "time"))
	case "cut":
		w.cut()
	case "crash":
		w.crash()
	case "restart": // another instance, with an older table of grants
		w.grants = nil
		if !w.full && rapid.Bool().Draw(t, "granted") {
			w.grants = &Grants{Grants: []*Grant{{Id: "g9", Agent: "quay", Tool: "sail", By: "ines"}}}
		}
	default:
		w.read(rapid.IntRange(0, 2).Draw(t, "log"))
	}
	w.now = w.now.Add(time.Millisecond)
}

// finish reads all records and lets all deadlines pass.
func (w *simulation) finish() {
	for {
		for log := range w.logs {
			for w.next[log] < len(w.logs[log]) {
				w.read(log)
			}
		}
		if s := w.state(); s == nil || len(s.Open) == 0 && w.next[logDecisions] == len(w.logs[logDecisions]) {
			return
		}
		w.wait(time.Minute)
	}
}

// check checks the outcomes of all gates.
func (w *simulation) check() {
	w.tb.Helper()
	for id := range w.accepted {
		require.NotEmpty(w.tb, w.outcomes[id], "gate %s has an outcome", id)
	}
	for id, list := range w.outcomes {
		if w.crashes == 0 {
			require.Len(w.tb, list, 1, "gate %s ended once", id)
		}
		for _, o := range list {
			o.WaitedMS, list[0].WaitedMS = 0, 0
			require.Equal(w.tb, list[0], o, "gate %s ended in one way", id)
		}
		if list[0].Status == topics.GateApproved {
			w.checkApproved(list[0])
		}
	}
}

// checkApproved checks that a person, a grant or the policy approved a gate.
func (w *simulation) checkApproved(o topics.GateOutcome) {
	w.tb.Helper()
	require.NotEmpty(w.tb, o.EffectiveArgsSHA256)
	switch o.Cause {
	case topics.CauseHuman:
		require.True(w.tb, slices.ContainsFunc(w.logs[logDecisions], func(e Event) bool {
			d := e.(Decided).Decision
			return d.DecisionID == o.DecisionID && d.GateID == o.GateID && d.Verdict == topics.VerdictApprove && d.ArgsSHA256 == ""
		}), "a person approved %s", o.GateID)
	case topics.CauseGrant:
		require.Equal(w.tb, "ines", o.By)
	case topics.CausePolicy:
		require.Equal(w.tb, "look", o.Tool)
	default:
		require.Fail(w.tb, "approved without a reason", "%+v", o)
	}
}

// moves without crashes; with more reads than writes, so that positions advance.
var calm = []string{
	"request", "request", "decide", "decide", "revoke", "withdraw", "purge", "again", "wait", "read", "read", "read", "read", "read", "read",
}

func TestEveryGateEndsInOneOutcome(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newSimulation(t)
		for range rapid.IntRange(0, 80).Draw(t, "moves") {
			w.move(t, calm)
		}
		w.finish()
		w.check()
		for _, log := range w.logs { // repeat everything
			for _, e := range log {
				w.send(w.handle(e))
			}
		}
		w.finish()
		w.check()
	})
}

// After a crash, the group reads records again, in another order of topics and at another time, and its outputs since the cut
// are still there. All outcomes of a gate must be the same.
func TestEveryGateEndsInOneWayAcrossCrashes(t *testing.T) {
	for name, simulated := range map[string]func(tb) *simulation{"room": newSimulation, "full rows": newFullSimulation} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := simulated(t)
				moves := append(slices.Clone(calm), "cut", "crash", "restart")
				for range rapid.IntRange(0, 120).Draw(t, "moves") {
					w.move(t, moves)
				}
				w.finish()
				w.crash()
				w.finish()
				w.check()
			})
		})
	}
}

func TestEqualEventsGiveEqualResults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := newSimulation(t)
		for range rapid.IntRange(0, 60).Draw(t, "moves") {
			one.move(t, calm)
		}
		two, three := newHarness(t), newHarness(t)
		for _, log := range one.logs {
			for _, e := range log {
				require.Equal(t, two.handle(e), three.handle(e))
				require.Equal(t, two.row, three.row)
			}
		}
	})
}
