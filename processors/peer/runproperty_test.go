package peer

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/internal/rows/peerrow"
	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

// runWorld is the session of a peer's task: its partition of each topic, the turn, and the group that reads the topics in any
// order. Records stay where they are when the group crashes; the row and the positions return to those of the last cut.
type runWorld struct {
	*receiver
	logs    [5][]event
	next    [5]int // position in each log
	saved   []byte // the row of the last cut
	savedAt [5]int // and its positions
	crashes int
	sent    map[string]topics.Message // the messages, by ID; the turn ignores repeats
	open    []string                  // the request IDs of open turns
	records map[string][]any          // what was written of each kind that must not differ, by kind or ID
	began   bool                      // a run was accepted
	gates   map[string]event          // the outcomes of gates that have ended
}

const (
	runCommands = iota
	runOutputs
	runGates // requests and outcomes, each in their order
	runTools
	runControls
)

func newRunWorld(t machinetest.TB, change ...func(*Config)) *runWorld {
	p := newReceiver(t, append([]func(*Config){func(c *Config) { c.RememberFor = 1000 * 24 * time.Hour }}, change...)...)
	return &runWorld{receiver: p, sent: map[string]topics.Message{}, records: map[string][]any{}, gates: map[string]event{}}
}

func (w *runWorld) write(log int, e event) { w.logs[log] = append(w.logs[log], e) }

// read applies the next record of a log, if there is one.
func (w *runWorld) read(log int) {
	if w.next[log] < len(w.logs[log]) {
		w.next[log]++
		w.send(w.Handle(w.logs[log][w.next[log]-1]))
	}
}

// send keeps what the group has written, and lets the turn read it.
func (w *runWorld) send(es effects) {
	for _, m := range es {
		require.NotEmpty(w.TB, m.Topic, "nothing is dead-lettered: %v", m.Reason)
		switch v := m.Value.(type) {
		case topics.PeerCommand:
			if m.Key == w.key {
				w.write(runCommands, w.own(m.ID, v))
				continue
			}
			for _, answer := range w.ofLabel(v) {
				w.write(runCommands, w.own("", answer.Value.(topics.PeerCommand)))
			}
		case topics.GateRequest:
			record, g := read(w.harness, w.topics.GateRequests, "", v)
			w.write(runGates, gateAsked{record, g})
			if g.Withdrawn != "" {
				w.endGate(g.GateID, topics.GateCancelled, g.Withdrawn)
			}
		case topics.Message:
			w.began = true
			if _, repeated := w.sent[m.ID]; !repeated {
				w.open = append(w.open, strings.TrimSuffix(m.ID, "/message"))
			}
			w.sent[m.ID] = v
			w.records[m.ID] = append(w.records[m.ID], v)
		case topics.Control:
			w.end(*v.RequestID, "", true)
		case topics.PeerAudit:
			w.began = true
			w.records[string(v.Event)] = append(w.records[string(v.Event)], v)
			w.records[m.ID] = append(w.records[m.ID], v)
		case topics.Output:
			w.records[m.ID] = append(w.records[m.ID], v)
		case topics.PeerReply:
			if v.State == topics.PeerDone {
				v.Waiter = ""
				w.records["done"] = append(w.records["done"], v)
			}
		}
	}
}

// endGate ends a gate, or repeats its outcome. A turn whose gate is closed because the peer cannot ask ends.
func (w *runWorld) endGate(id string, status topics.GateStatus, cause topics.GateCause) {
	_, ended := w.gates[id]
	if !ended {
		w.gates[id] = w.gateOutcome(id, status, because(cause))
	}
	w.write(runGates, w.gates[id])
	if !ended && cause == topics.CauseParentCannotAsk && len(w.open) > 0 {
		w.endAs(w.open[0], "", topics.CodeParentCannotAsk)
	}
}

// end ends a turn with its output, if it is open.
func (w *runWorld) end(request, text string, cancelled bool) {
	code := topics.Code("")
	if cancelled {
		code = topics.CodeCancelled
	}
	w.endAs(request, text, code)
}

func (w *runWorld) endAs(request, text string, code topics.Code) {
	i := slices.Index(w.open, request)
	if i < 0 {
		return
	}
	w.open = slices.Delete(w.open, i, i+1)
	w.write(runOutputs, w.output("turn-1/0/answer/0", text, func(o *topics.Output) {
		o.RequestID = &request
		if code != "" {
			o.Error = &topics.OutputError{Code: code, Message: "ended by the turn"}
		}
	}))
}

// wait moves the clock by d and fires the deadline of the row if it is due.
func (w *runWorld) wait(d time.Duration) {
	w.Now = w.Now.Add(d)
	if at, ok := w.Deadline(); ok && !at.After(w.Now) {
		w.send(w.Handle(deadlineCame{}))
	}
}

func (w *runWorld) cut() { w.saved, w.savedAt = bytes.Clone(w.Row), w.next }

func (w *runWorld) crash() {
	w.Row, w.next = bytes.Clone(w.saved), w.savedAt
	w.crashes++
}

// move makes one random move.
func (w *runWorld) move(t *rapid.T, moves []string) {
	waiter := rapid.SampledFrom([]string{"", "w1", "w2"}).Draw(t, "waiter")
	switch move := rapid.SampledFrom(moves).Draw(t, "move"); move {
	case "run":
		req := request(func(r *peerwire.Request) {
			if rapid.IntRange(0, 5).Draw(t, "other") == 0 && len(moves) > len(quiet) {
				r.Content = "delete the rows"
			}
		})
		w.write(runCommands, w.runOf(req, waiter, func(c *topics.PeerCommand) {
			c.Detached = rapid.Bool().Draw(t, "detached")
			if rapid.Bool().Draw(t, "callback") {
				c.CallbackService, c.CallbackToken = "partner-b-cb", "T1"
			}
		}))
	case "ask", "leave", "cancel":
		w.write(runCommands, w.about(topics.PeerCommandKind(move), waiter))
	case "answer":
		if len(w.open) > 0 {
			size := rapid.SampledFrom([]int{0, 10, 10, 20 << 10, 50 << 10}).Draw(t, "size")
			w.end(w.open[0], strings.Repeat(rapid.SampledFrom([]string{"x", "\"", "\x01"}).Draw(t, "text"), size), false)
		}
	case "tool":
		w.write(runTools, w.toolCall("", rapid.SampledFrom([]string{"read", "pay", "sail"}).Draw(t, "tool"), "{}"))
	case "gate":
		id := rapid.SampledFrom([]string{"g1", "g2"}).Draw(t, "gate")
		if rapid.Bool().Draw(t, "ends") {
			w.endGate(id, topics.GateApproved, topics.CauseHuman)
		} else {
			w.write(runGates, w.gateRequest(id, "pay", "May I?"))
		}
	case "purge":
		w.write(runControls, w.control(topics.ActionPurge))
	case "again":
		log := rapid.IntRange(0, len(w.logs)-1).Draw(t, "log")
		if n := w.next[log]; n > 0 {
			w.send(w.Handle(w.logs[log][rapid.IntRange(0, n-1).Draw(t, "record")]))
		}
	case "wait":
		w.wait(rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, time.Minute}).Draw(t, "time"))
	case "cut":
		w.cut()
	case "crash":
		w.crash()
	default:
		w.read(rapid.IntRange(0, len(w.logs)-1).Draw(t, "log"))
	}
	w.Now = w.Now.Add(time.Millisecond)
}

// finish reads all records, lets the turn answer, and lets time pass until the run has ended.
func (w *runWorld) finish() {
	for {
		for log := range w.logs {
			for w.next[log] < len(w.logs[log]) {
				w.read(log)
			}
		}
		run := w.Read().GetRun()
		switch {
		case w.next[runCommands] < len(w.logs[runCommands]):
		case len(w.open) > 0:
			w.end(w.open[0], "42 rows", false)
		case run != nil && run.Phase != peerrow.Run_ENDED:
			w.wait(time.Minute)
		default:
			return
		}
	}
}

// check checks what was ever written.
func (w *runWorld) check() {
	w.TB.Helper()
	for id, list := range w.records {
		for _, v := range list {
			require.Equal(w.TB, list[0], v, "%s is always the same", id)
		}
	}
	require.LessOrEqual(w.TB, len(w.sent), 1, "a message always has the same ID")
	if !w.began {
		require.Empty(w.TB, w.records)
		return
	}
	require.NotEmpty(w.TB, w.records["done"])
	require.Equal(w.TB, peerrow.Run_ENDED, w.Read().Run.Phase)
	require.Equal(w.TB, topics.Raw(w.Read().Run.Reply), w.records["done"][0].(topics.PeerReply).Body)
	require.NotEmpty(w.TB, w.records[string(topics.PeerReceived)])
	require.NotEmpty(w.TB, w.records[string(topics.PeerCompleted)])
	if len(w.sent) == 0 {
		require.Contains(w.TB, string(w.Read().Run.Reply), "timed out", "only a task that is read too late has no message")
	}
	if w.crashes == 0 {
		for id, list := range w.records {
			if id != "done" { // repeated for those who ask
				require.Len(w.TB, list, 1, id)
			}
		}
	}
}

var (
	quiet = []string{"run", "answer", "tool", "ask", "read", "read", "read", "read", "read", "read"}
	noise = []string{"leave", "cancel", "gate", "gate", "purge", "again", "wait", "wait"}
	fall  = []string{"cut", "crash"}
)

// narrow makes rows small and runs short.
func narrow(c *Config) { c.RowLimit, c.RecordLimit, c.RunTime = 64<<10, 128<<10, time.Minute }

func play(t *rapid.T, w *runWorld, moves ...[]string) {
	all := slices.Concat(moves...)
	for range rapid.IntRange(0, 120).Draw(t, "moves") {
		w.move(t, all)
	}
	w.finish()
	w.check()
}

func TestEveryRunEndsInOneReply(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newRunWorld(t, narrow)
		play(t, w, quiet, quiet, noise)
		for log := range w.logs { // repeat everything
			for _, e := range slices.Clone(w.logs[log]) {
				w.send(w.Handle(e))
			}
		}
		w.finish()
		w.check()
	})
}

// After a crash, the group reads records again, in another order of topics and at another time, and what it has written since
// the cut is still there.
func TestEveryRunEndsInOneReplyAcrossCrashes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newRunWorld(t, narrow)
		play(t, w, quiet, quiet, noise, fall)
		w.crash()
		w.finish()
		w.check()
	})
}

// A crash must not lose the answer of a turn, which is made only once.
func TestCrashesDoNotLoseTheAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newRunWorld(t)
		play(t, w, quiet, fall)
		if w.began {
			reply, err := peerwire.ReadReply(w.Read().Run.Reply, "t-9")
			require.NoError(t, err)
			if reply.Status != peerwire.StatusSuccess {
				require.Contains(t, reply.Error, "which is more than a reply may have")
			}
		}
	})
}

func TestEqualEventsOfRunsGiveEqualResults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := newRunWorld(t)
		for range rapid.IntRange(0, 60).Draw(t, "moves") {
			one.move(t, slices.Concat(quiet, noise))
		}
		two, three := newReceiver(t), newReceiver(t)
		for _, log := range one.logs {
			for _, e := range log {
				require.Equal(t, two.Handle(e).Records(), three.Handle(e).Records())
				require.Equal(t, two.Row, three.Row)
			}
		}
	})
}
