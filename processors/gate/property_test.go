package gate

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/topics"
)

// simulation is one session's partition of each input topic, and the group that reads them in any order. Records stay where
// they are when the group crashes; the row and the positions return to those of the last cut.
type simulation struct {
	*harness
	logs     [3][]event // requests, decisions, controls
	next     [3]int     // position in each log
	saved    []byte     // the row of the last cut
	savedAt  [3]int     // and its positions
	crashes  int
	outcomes map[string][]topics.GateOutcome // all that were ever sent, by gate
	accepted map[string]bool                 // gates whose request was read
	full     bool                            // see newFullSimulation
	places   bool                            // see newChannelSimulation
	messages map[string]topics.Output        // to channels, by record ID
}

const (
	logRequests = iota
	logDecisions
	logControls
)

func newSimulation(t tb) *simulation {
	p := newHarness(t, func(c *Config) {
		c.Hold, c.RememberFor = 1000*24*time.Hour, 1000*24*time.Hour // what is forgotten may end again
		c.SessionGrant = time.Hour
		c.Policy = approval.Policy{TTL: time.Minute, Rules: []approval.Rule{
			{Tool: "look", Effect: approval.Allow},
			{Tool: "drop", Effect: approval.Deny},
		}}
	})
	return &simulation{
		harness: p, outcomes: map[string][]topics.GateOutcome{}, accepted: map[string]bool{}, messages: map[string]topics.Output{},
	}
}

// newChannelSimulation returns a simulation in which people are asked on channels.
func newChannelSimulation(t tb) *simulation {
	w := newSimulation(t)
	w.config.Channels, w.places = true, true
	return w
}

// originOf returns where the request of a gate comes from: all but the last from one room.
func originOf(gate string) topics.Origin {
	switch gate {
	case "aaaa-0":
		return inRoom("", "u1")
	case "bbbb-1":
		return inRoom("17.5", "u1")
	default:
		return inRoom("", "u2")
	}
}

// newFullSimulation returns a simulation with room for one gate. There are no grants, and people decide only about gates that
// they saw in a row that survives crashes.
func newFullSimulation(t tb) *simulation {
	w := newSimulation(t)
	w.config.OpenLimit, w.full = 1, true
	return w
}

// visible reports whether a person may decide about a gate.
func (w *simulation) visible(id string) bool {
	if !w.full {
		return true
	}
	s, err := gaterow.Table.Unmarshal(w.saved)
	require.NoError(w.TB, err)
	return slices.ContainsFunc(gates(w.key, s), func(v View) bool { return v.GateID == id && v.Outcome == nil })
}

func (w *simulation) write(log int, e event) { w.logs[log] = append(w.logs[log], e) }

// read applies the next record of a log, if there is one.
func (w *simulation) read(log int) {
	if w.next[log] == len(w.logs[log]) {
		return
	}
	e := w.logs[log][w.next[log]]
	w.next[log]++
	if r, ok := e.(requested); ok && r.Request.Withdrawn == "" {
		w.accepted[r.Request.GateID] = true
	}
	w.send(w.Handle(e))
}

// send keeps outcomes, and appends closes to the log of decisions.
func (w *simulation) send(es effects) {
	for _, e := range es {
		switch v := e.Value.(type) {
		case topics.GateDecision:
			w.write(logDecisions, w.decided(v))
		case topics.Output:
			w.message(e.ID, v)
		case topics.GateOutcome:
			require.Equal(w.TB, v.GateID+"/outcome", e.ID)
			w.outcomes[v.GateID] = append(w.outcomes[v.GateID], v)
		}
	}
}

// message keeps a message to a channel.
func (w *simulation) message(id string, o topics.Output) {
	w.TB.Helper()
	before, ok := w.messages[id]
	w.messages[id] = o
	if w.crashes == 0 && !strings.HasPrefix(id, "gate-answer-") {
		require.False(w.TB, ok, "%s is written once", id)
	}
	if ok && strings.HasPrefix(id, "gate-ask-") {
		before.Timestamp, o.Timestamp = "", ""
		require.Equal(w.TB, before.ReplyTo, o.ReplyTo)
		require.Equal(w.TB, before.Content, o.Content, "a repeat says the same")
	}
}

// wait moves the clock by d and fires the deadline of the row if it is due.
func (w *simulation) wait(d time.Duration) {
	w.Now = w.Now.Add(d)
	if s := w.Read(); s != nil && s.DeadlineMs <= w.Now.UnixMilli() {
		w.send(w.Handle(deadlineCame{}))
	}
}

func (w *simulation) cut() { w.saved, w.savedAt = bytes.Clone(w.Row), w.next }

func (w *simulation) crash() {
	w.Row, w.next = bytes.Clone(w.saved), w.savedAt
	w.crashes++
}

var (
	gateIDs = []string{"aaaa-0", "aaaa-1", "bbbb-0", "bbbb-1"}
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
			if w.places {
				r.Channel = topics.EncodeOrigin(originOf(id))
			}
		}))
	case "decide":
		if !w.visible(id) {
			break
		}
		verdict := rapid.SampledFrom([]topics.GateVerdict{topics.VerdictApprove, topics.VerdictDeny}).Draw(t, "verdict")
		w.write(logDecisions, w.decision(id, fmt.Sprint("d", w.Offset), verdict, func(d *topics.GateDecision) {
			if verdict == topics.VerdictApprove && !w.full {
				d.Scope = rapid.SampledFrom([]topics.GateScope{"", "", topics.ScopeSession, topics.ScopeAgent}).Draw(t, "scope")
			}
			if rapid.IntRange(0, 4).Draw(t, "malformed") == 0 {
				d.ArgsSHA256 = "00"
			}
		}))
	case "say":
		w.write(logDecisions, w.said(t, id))
	case "revoke":
		w.write(logDecisions, w.decision(id, fmt.Sprint("r", w.Offset), topics.VerdictRevoke))
	case "withdraw":
		w.write(logRequests, w.withdrawal(id, topics.CauseParentEnded))
	case "purge":
		w.write(logControls, w.control(topics.ActionPurge))
	case "again":
		log := rapid.IntRange(0, 2).Draw(t, "log")
		if n := w.next[log]; n > 0 {
			w.send(w.Handle(w.logs[log][rapid.IntRange(0, n-1).Draw(t, "record")]))
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
			w.grants = &gaterow.Grants{Grants: []*gaterow.Grant{{Id: "g9", Agent: "quay", Tool: "sail", By: "ines"}}}
		}
	default:
		w.read(rapid.IntRange(0, 2).Draw(t, "log"))
	}
	w.checkAsked()
	w.Now = w.Now.Add(time.Millisecond)
}

// said returns what someone in some place says about some gate.
func (w *simulation) said(t *rapid.T, id string) event {
	place := rapid.SampledFrom([]topics.Origin{inRoom("", "u1"), inRoom("", "u2"), inRoom("17.5", "u1"), inRoom("", ""), inRoom("9", "u2")}).Draw(t, "place")
	verdict := rapid.SampledFrom([]topics.GateVerdict{topics.VerdictApprove, topics.VerdictApprove, topics.VerdictDeny}).Draw(t, "verdict")
	return w.decision(id, fmt.Sprint("c", w.Offset), verdict, func(d *topics.GateDecision) {
		d.Channel, d.Via = topics.EncodeOrigin(place), "bridge"
		d.Approver = rapid.IntRange(0, 4).Draw(t, "approver") == 0
		d.Pressed = rapid.IntRange(0, 3).Draw(t, "pressed") == 0
		if !d.Pressed {
			d.GateID = rapid.SampledFrom([]string{"", "", "aaaa", "BBBB", "zzzz", "a", id}).Draw(t, "code")
		}
	})
}

// finish reads all records and lets all deadlines pass.
func (w *simulation) finish() {
	for {
		for log := range w.logs {
			for w.next[log] < len(w.logs[log]) {
				w.read(log)
			}
		}
		if s := w.Read(); s == nil || len(s.Open) == 0 && w.next[logDecisions] == len(w.logs[logDecisions]) {
			return
		}
		w.wait(time.Minute)
	}
}

// check checks the outcomes of all gates.
func (w *simulation) check() {
	w.TB.Helper()
	for id := range w.accepted {
		require.NotEmpty(w.TB, w.outcomes[id], "gate %s has an outcome", id)
	}
	for id, list := range w.outcomes {
		if w.crashes == 0 {
			require.Len(w.TB, list, 1, "gate %s ended once", id)
		}
		for _, o := range list {
			o.WaitedMS, list[0].WaitedMS = 0, 0
			require.Equal(w.TB, list[0], o, "gate %s ended in one way", id)
		}
		if list[0].Status == topics.GateApproved {
			w.checkApproved(list[0])
		}
	}
}

// checkApproved checks that a person, a grant or the policy approved a gate.
func (w *simulation) checkApproved(o topics.GateOutcome) {
	w.TB.Helper()
	require.NotEmpty(w.TB, o.EffectiveArgsSHA256)
	switch o.Cause {
	case topics.CauseHuman:
		require.True(w.TB, slices.ContainsFunc(w.logs[logDecisions], func(e event) bool {
			d := e.(decided).Decision
			return d.DecisionID == o.DecisionID && hasCode(o.GateID, d.GateID) && d.Verdict == topics.VerdictApprove && d.ArgsSHA256 == "" &&
				mayDecide(o.GateID, d)
		}), "a person approved %s", o.GateID)
	case topics.CauseGrant:
		require.Equal(w.TB, "ines", o.By)
	case topics.CausePolicy:
		require.Equal(w.TB, "look", o.Tool)
	default:
		require.Fail(w.TB, "approved without a reason", "%+v", o)
	}
}

// mayDecide reports whether a decision is no one's on a channel, or that of someone who may decide there.
func mayDecide(gate string, d topics.GateDecision) bool {
	if d.Channel == nil {
		return true
	}
	by, err := topics.DecodeOrigin(d.Channel)
	from := originOf(gate)
	return err == nil && by.SamePlace(from) && (d.Approver || by.User != "" && by.User == from.User)
}

// checkMessages checks the questions and what was said of their end.
func (w *simulation) checkMessages() {
	w.TB.Helper()
	ends := map[string]string{} // gates by decision
	for id, list := range w.outcomes {
		_, asked := w.messages["gate-ask-"+id]
		_, told := w.messages["gate-end-"+id]
		if w.crashes == 0 && asked {
			require.True(w.TB, told, "those who were asked are told the end of gate %s, %+v", id, list[0])
		}
		if list[0].Cause == topics.CauseHuman {
			require.NotContains(w.TB, ends, list[0].DecisionID, "a decision ends one gate")
			ends[list[0].DecisionID] = id
		}
		if asked {
			require.Equal(w.TB, topics.EncodeOrigin(originOf(id)), topics.OriginOf(w.messages["gate-ask-"+id].ReplyTo))
		}
	}
}

// checkAsked checks that every gate that waits for a person was asked about.
func (w *simulation) checkAsked() {
	w.TB.Helper()
	for _, g := range w.Read().GetOpen() {
		if w.places && g.Closing == "" && !g.NoRoom && g.ExpiresMs > w.Now.UnixMilli() {
			require.Contains(w.TB, w.messages, "gate-ask-"+g.Id)
		}
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
				w.send(w.Handle(e))
			}
		}
		w.finish()
		w.check()
	})
}

// withPeople are calm moves, and people who say things on channels.
var withPeople = append(slices.Clone(calm), "say", "say", "say", "read", "read")

func TestPeopleOnChannelsAreAskedAndToldOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newChannelSimulation(t)
		for range rapid.IntRange(0, 80).Draw(t, "moves") {
			w.move(t, withPeople)
		}
		w.finish()
		w.check()
		w.checkMessages()
	})
}

// After a crash, the group reads records again, in another order of topics and at another time, and its outputs since the cut
// are still there. All outcomes of a gate must be the same.
func TestEveryGateEndsInOneWayAcrossCrashes(t *testing.T) {
	for name, simulated := range map[string]func(tb) *simulation{
		"room": newSimulation, "full rows": newFullSimulation, "channels": newChannelSimulation,
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := simulated(t)
				moves := append(slices.Clone(calm), "cut", "crash", "restart")
				if w.places {
					moves = append(moves, "say", "say", "say", "read", "read")
				}
				for range rapid.IntRange(0, 120).Draw(t, "moves") {
					w.move(t, moves)
				}
				w.finish()
				w.crash()
				w.finish()
				w.check()
				w.checkMessages()
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
				require.Equal(t, two.Handle(e).Records(), three.Handle(e).Records())
				require.Equal(t, two.Row, three.Row)
			}
		}
	})
}
