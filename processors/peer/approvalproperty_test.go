package peer

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/internal/rows/peerrow"
	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

// approvalWorld has tasks of one peer whose turns want to make the same call, the gates that decide about it, and a person. Each task
// and the label have a row of their own, which crashes on its own: it returns to its last cut, with what it has written since.
type approvalWorld struct {
	tb        machinetest.TB
	rows      []*worldRow                  // that of the label first
	tasks     []commanded                  // of the other rows
	gates     map[string]topics.GateStatus // the gate group's: the first end counts
	requests  map[string]topics.GateRequest
	approvals int // by the person, of listed requests or of the gates themselves
	paid      int
	ended     map[string]string // the turns that have ended, by session, and how
	rejected  map[string]bool   // the sessions whose reply is a rejection
	wasPaid   map[string]bool   // the sessions whose call ran
}

// worldRow is a row, and the partitions of the topics that it reads.
type worldRow struct {
	*receiver
	logs    [4][]event // commands, gate requests, gate outcomes, outputs
	next    [4]int
	saved   []byte
	savedAt [4]int
}

const (
	worldCommands = iota
	worldRequests
	worldOutcomes
	worldOutputs
)

func newApprovalWorld(t machinetest.TB, tasks int) *approvalWorld {
	w := &approvalWorld{
		tb: t, gates: map[string]topics.GateStatus{}, requests: map[string]topics.GateRequest{}, ended: map[string]string{},
		rejected: map[string]bool{}, wasPaid: map[string]bool{},
	}
	label := newReceiver(t)
	label.key = labelKey("partner-b")
	w.rows = append(w.rows, &worldRow{receiver: label})
	for i := range tasks {
		p := newReceiver(t)
		id := fmt.Sprint("t-", i)
		p.key = peerwire.SessionID("partner-b", id)
		w.rows = append(w.rows, &worldRow{receiver: p})
		w.tasks = append(w.tasks, p.runOf(request(func(r *peerwire.Request) { r.TaskID = id }), ""))
	}
	return w
}

// start lets the peer send the first n tasks.
func (w *approvalWorld) start(n int) {
	for i, command := range w.tasks[:n] {
		if r := w.rows[i+1]; len(r.logs[worldCommands]) == 0 {
			r.logs[worldCommands] = []event{command}
		}
	}
}

func (w *approvalWorld) at(key string) *worldRow {
	return w.rows[slices.IndexFunc(w.rows, func(r *worldRow) bool { return r.key == key })]
}

// read applies the next record of a log.
func (w *approvalWorld) read(r *worldRow, log int) {
	if r.next[log] < len(r.logs[log]) {
		r.next[log]++
		w.send(r, r.Handle(r.logs[log][r.next[log]-1]))
	}
}

// send plays the topics, the gates and the turns.
func (w *approvalWorld) send(r *worldRow, es effects) {
	for _, m := range es {
		require.NotEmpty(w.tb, m.Topic, "nothing is dead-lettered: %v", m.Reason)
		switch v := m.Value.(type) {
		case topics.PeerCommand:
			to := w.at(m.Key)
			to.logs[worldCommands] = append(to.logs[worldCommands], to.own(m.ID, v))
		case topics.Message: // the turn calls pay; a repeat of the message changes nothing
			w.open(r, topics.GateRequest{
				GateID: "g-" + r.key, SessionID: r.key, Kind: topics.GateTool, Tool: "pay", Args: topics.Raw(invoice),
				Origin: topics.GateOrigin{Agent: "harbor", Via: "turn"},
			})
		case topics.GateRequest:
			if v.Withdrawn == "" {
				w.open(r, v)
			} else {
				w.end(v.GateID, topics.GateCancelled, v.Withdrawn)
			}
		case topics.GateDecision:
			w.end(v.GateID, topics.GateApproved, topics.CauseHuman)
		case topics.Control:
			w.answer(r, "cancelled")
		case topics.PeerReply:
			reply, err := peerwire.ReadReply(v.Body, v.TaskID)
			require.NoError(w.tb, err)
			if reply.Status == peerwire.StatusRejected {
				require.False(w.tb, w.wasPaid[r.key], "a rejected task has not paid")
				w.rejected[r.key] = true
			}
		}
	}
}

// open opens a gate, unless its ID is known.
func (w *approvalWorld) open(r *worldRow, g topics.GateRequest) {
	if _, known := w.requests[g.GateID]; known {
		return
	}
	record, g := read(r.harness, r.topics.GateRequests, "", g)
	w.requests[g.GateID] = g
	r.logs[worldRequests] = append(r.logs[worldRequests], gateAsked{record, g})
}

// end ends a gate, if it is open, and lets its turn go on.
func (w *approvalWorld) end(id string, status topics.GateStatus, cause topics.GateCause) {
	g, known := w.requests[id]
	if !known || w.gates[id] != "" {
		return
	}
	w.gates[id] = status
	r := w.at(g.SessionID)
	r.logs[worldOutcomes] = append(r.logs[worldOutcomes], r.gateOutcome(id, status, because(cause), func(o *topics.GateOutcome) {
		o.Tool, o.EffectiveArgsSHA256, o.InteractionID = g.Tool, g.ArgsSHA256, g.InteractionID
	}))
	switch {
	case g.Origin.Via != "turn":
	case status == topics.GateApproved && w.ended[r.key] == "":
		require.False(w.tb, w.rejected[r.key], "nothing of a rejected task runs")
		w.paid++
		w.wasPaid[r.key] = true
		w.answer(r, "paid")
	case cause == topics.CauseParentCannotAsk:
		w.answer(r, string(topics.CodeParentCannotAsk))
	}
}

// answer ends the turn of a row.
func (w *approvalWorld) answer(r *worldRow, how string) {
	if w.ended[r.key] != "" {
		return
	}
	w.ended[r.key] = how
	id := runID(w.tasks[slices.Index(w.rows, r)-1])
	r.logs[worldOutputs] = append(r.logs[worldOutputs], r.output("turn-1/0/answer/0", how, func(o *topics.Output) {
		if o.RequestID = &id; how != "paid" {
			o.Error = &topics.OutputError{Code: topics.Code(how), Message: how}
		}
	}))
	w.end("g-"+r.key, topics.GateCancelled, topics.CauseParentEnded)
}

func (w *approvalWorld) wait(d time.Duration) {
	for _, r := range w.rows {
		r.Now = r.Now.Add(d)
		if at, ok := r.Deadline(); ok && !at.After(r.Now) {
			w.send(r, r.Handle(deadlineCame{}))
		}
	}
}

func (w *approvalWorld) move(t *rapid.T) {
	r := rapid.SampledFrom(w.rows).Draw(t, "row")
	switch rapid.SampledFrom([]string{"read", "read", "read", "read", "read", "read", "wait", "wait", "cut", "crash", "approve", "cancel"}).Draw(t, "move") {
	case "wait":
		w.wait(rapid.SampledFrom([]time.Duration{time.Second, time.Second, time.Minute}).Draw(t, "time"))
	case "cut":
		r.saved, r.savedAt = bytes.Clone(r.Row), r.next
	case "crash":
		r.Row, r.next = bytes.Clone(r.saved), r.savedAt
	case "approve":
		w.approve(t)
	case "cancel":
		if len(r.logs[worldCommands]) > 0 && r != w.rows[0] && rapid.IntRange(0, 3).Draw(t, "cancels") == 0 {
			id := r.logs[worldCommands][0].(commanded).Command.TaskID
			r.logs[worldCommands] = append(r.logs[worldCommands], r.about(topics.PeerCancel, "", func(c *topics.PeerCommand) { c.TaskID = id }))
		}
	default:
		w.read(r, rapid.IntRange(0, len(r.logs)-1).Draw(t, "log"))
	}
}

// approve lets the person approve one of the open gates.
func (w *approvalWorld) approve(t *rapid.T) {
	var open []string
	for id := range w.requests {
		if w.gates[id] == "" {
			open = append(open, id)
		}
	}
	slices.Sort(open)
	if len(open) > 0 {
		w.approvals++
		w.end(rapid.SampledFrom(open).Draw(t, "gate"), topics.GateApproved, topics.CauseHuman)
	}
}

// finish reads everything until every run has ended.
func (w *approvalWorld) finish() {
	for range 1000 {
		idle := true
		for _, r := range w.rows {
			for log := range r.logs {
				for r.next[log] < len(r.logs[log]) {
					idle = false
					w.read(r, log)
				}
			}
		}
		running := slices.ContainsFunc(w.rows[1:], func(r *worldRow) bool {
			return len(r.logs[worldCommands]) > 0 && r.Read().GetRun().GetPhase() != peerrow.Run_ENDED
		})
		switch {
		case !idle:
		case running:
			w.wait(time.Second)
		default:
			return
		}
	}
	require.Fail(w.tb, "a run does not end")
}

// TestApprovalPaysOnceAcrossCrashes: whatever crashes between the steps of an approval, a call runs at most as often as a person has
// approved one, and nothing of a task runs after its rejection.
func TestApprovalPaysOnceAcrossCrashes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newApprovalWorld(t, 4)
		for n := 2; n <= 4; n += 2 {
			w.start(n)
			for range rapid.IntRange(0, 100).Draw(t, "moves") {
				w.move(t)
			}
			w.finish()
			w.approve(t)
		}
		w.finish()
		for _, r := range w.rows {
			r.Row, r.next = bytes.Clone(r.saved), r.savedAt
		}
		w.finish()
		require.LessOrEqual(t, w.paid, w.approvals)
	})
}

// TestApprovedCallIsPaidByTheRetry: without crashes and cancellations, the task that is sent after the approval pays.
func TestApprovedCallIsPaidByTheRetry(t *testing.T) {
	w := newApprovalWorld(t, 2)
	first, retry := w.rows[1], w.rows[2]
	w.start(1)
	w.finish()
	require.True(t, w.rejected[first.key])
	w.end(listedID(first.key, first.Read().Run, "g-"+first.key), topics.GateApproved, topics.CauseHuman)
	w.finish()
	w.start(2)
	w.finish()
	require.Equal(t, 1, w.paid)
	require.True(t, w.wasPaid[retry.key])
}
