package peer

import (
	"bytes"
	"fmt"
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

// dispatch is one session's partition of each input topic, a sink that answers attempts, and the group that reads the topics in
// any order. Records stay where they are when the group crashes; the row and the positions return to those of the last cut.
type dispatch struct {
	*harness
	logs      [5][]event // calls, commands, receipts, outputs, controls
	next      [5]int     // position in each log
	saved     []byte     // the row of the last cut
	savedAt   [5]int     // and its positions
	crashes   int
	asked     []topics.Delivery // all that were ever sent
	written   map[string][]any  // what others are told, by ID
	called    map[string]bool   // IDs of the calls that were read
	replySize int
	full      bool // see newFullDispatch
}

const (
	logCalls = iota
	logCommands
	logReceipts
	logOutputs
	logControls
)

func newDispatch(t machinetest.TB) *dispatch {
	p := newHarness(t, func(c *Config) { c.RememberFor = 1000 * 24 * time.Hour }) // what is forgotten may end again
	return &dispatch{harness: p, written: map[string][]any{}, called: map[string]bool{}, replySize: 10}
}

// newFullDispatch returns a dispatch whose row has room for a few tasks.
func newFullDispatch(t machinetest.TB) *dispatch {
	w := newDispatch(t)
	w.config.RecordLimit, w.config.RowLimit, w.config.TaskLimit = 128<<10, 64<<10, 3
	w.full, w.replySize = true, 30<<10
	return w
}

func (w *dispatch) write(log int, e event) { w.logs[log] = append(w.logs[log], e) }

// read applies the next record of a log, if there is one.
func (w *dispatch) read(log int) {
	if w.next[log] == len(w.logs[log]) {
		return
	}
	e := w.logs[log][w.next[log]]
	w.next[log]++
	if c, ok := e.(called); ok {
		w.called[c.ID] = true
	}
	w.apply(e)
}

// apply applies an event and checks what it brings.
func (w *dispatch) apply(e event) {
	before := w.Read()
	for _, m := range w.Handle(e) {
		require.NotEmpty(w.TB, m.Topic, "%v", m.Reason)
		switch v := m.Value.(type) {
		case topics.PeerCommand:
			w.write(logCommands, w.own(m.ID, v))
		case topics.Delivery:
			w.checkAttempt(before, v)
			w.asked = append(w.asked, v)
		case topics.ToolUseResult: // a call that is written twice has two times
			v.LatencyMS, v.Timestamp = 0, nil
			w.written[m.ID] = append(w.written[m.ID], v)
		case topics.PeerAudit:
			w.written[m.ID] = append(w.written[m.ID], v)
		case topics.PeerReply:
			if v.Waiter == "" {
				w.written[m.ID] = append(w.written[m.ID], v)
			}
		}
	}
}

// checkAttempt checks that a task has one open attempt, and none after its end.
func (w *dispatch) checkAttempt(before *peerrow.State, a topics.Delivery) {
	if sent(w.TB, a).Cancel {
		return
	}
	byRun := func(s *peerrow.State) *peerrow.Task {
		i := slices.IndexFunc(s.GetTasks(), func(x *peerrow.Task) bool { return x.RunId == a.DeliveryID })
		if i < 0 {
			return nil
		}
		return s.Tasks[i]
	}
	if x := byRun(before); x != nil {
		require.Contains(w.TB, []peerrow.Task_Phase{peerrow.Task_PENDING, peerrow.Task_ATTEMPT}, x.Phase, "no attempt after the end")
		if x.Phase == peerrow.Task_ATTEMPT {
			require.LessOrEqual(w.TB, x.DueMs, w.Now.UnixMilli(), "one attempt at a time")
		}
		require.EqualValues(w.TB, x.Attempts+1, a.Attempt)
	}
	require.Equal(w.TB, peerrow.Task_ATTEMPT, byRun(w.Read()).Phase)
}

// wait moves the clock by d and fires the deadline of the row if it is due.
func (w *dispatch) wait(d time.Duration) {
	w.Now = w.Now.Add(d)
	if at, ok := w.Deadline(); ok && !at.After(w.Now) {
		w.apply(deadlineCame{})
	}
}

func (w *dispatch) cut() { w.saved, w.savedAt = bytes.Clone(w.Row), w.next }

func (w *dispatch) crash() {
	w.Row, w.next = bytes.Clone(w.saved), w.savedAt
	w.crashes++
}

// inputs are those of the calls: the call of an ID is the same each time.
var inputs = []string{
	asking, asking,
	`{"peerId":"tenant-a","content":"x","taskId":"t0"}`,
	`{"peerId":"tenant-a","content":"y","taskId":"t0"}`,
	`{"peerId":"tenant-b","content":"x","agentId":"front","timeoutMs":1500}`,
	`{"peerId":"tenant-b","content":"x"}`,
	`{"peerId":7}`,
}

// dispatchMoves are moves without crashes; with more reads than writes, so that positions advance.
var dispatchMoves = []string{
	"call", "call", "delegate", "delegate", "leave", "ask", "cancel", "receipt", "receipt", "receipt", "output", "purge", "again", "wait",
	"read", "read", "read", "read", "read", "read", "read", "read",
}

// move makes one random move.
func (w *dispatch) move(t *rapid.T, moves []string) {
	task := rapid.SampledFrom([]string{"t0", "t1", "t2"}).Draw(t, "task")
	waiter := rapid.SampledFrom([]string{"w0", "w1"}).Draw(t, "waiter")
	switch move := rapid.SampledFrom(moves).Draw(t, "move"); move {
	case "call":
		i := rapid.IntRange(0, len(inputs)-1).Draw(t, "call")
		input := inputs[i]
		if w.full {
			input = strings.Replace(input, `"content":"`, `"content":"`+strings.Repeat("z", 4000*i), 1)
		}
		w.write(logCalls, w.delegation(fmt.Sprintf("turn-%d/0/tool-use/%d", i%3, i), input))
	case "delegate":
		w.write(logCommands, w.proxied(task, waiter, func(r *peerwire.Request, c *topics.PeerCommand) {
			r.Content = rapid.SampledFrom([]string{"x", "x", "x", "y"}).Draw(t, "content")
			c.Once, c.Detached = task == "t1", rapid.Bool().Draw(t, "detached")
		}))
	case "leave":
		w.write(logCommands, w.waiting(topics.PeerLeave, task, waiter))
	case "ask":
		w.write(logCommands, w.waiting(topics.PeerAsk, task, waiter))
	case "cancel":
		w.write(logCommands, w.waiting(topics.PeerCancel, task, ""))
	case "receipt":
		if len(w.asked) > 0 {
			w.answer(t, rapid.SampledFrom(w.asked).Draw(t, "attempt"))
		}
	case "output":
		w.write(logOutputs, w.output(fmt.Sprintf("turn-%d/1/answer/0", rapid.IntRange(0, 2).Draw(t, "turn")), "bye"))
	case "purge":
		w.write(logControls, w.control(topics.ActionPurge))
	case "again":
		log := rapid.IntRange(0, len(w.logs)-1).Draw(t, "log")
		if n := w.next[log]; n > 0 {
			w.apply(w.logs[log][rapid.IntRange(0, n-1).Draw(t, "record")])
		}
	case "wait":
		w.wait(rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, 30 * time.Second, 75 * time.Second}).Draw(t, "time"))
	case "drain":
		w.drain(rapid.IntRange(0, len(w.logs)-1).Draw(t, "log"))
	case "cut":
		w.cut()
	case "crash":
		w.crash()
	case "restart": // another instance, with another configuration
		enabled, peers := rapid.Bool().Draw(t, "enabled"), rapid.IntRange(0, 2).Draw(t, "peers")
		w.configure(func(s *Settings) {
			s.Enabled, s.Outbound = enabled, newHarness(w.TB).settings.Outbound[:peers]
		})
	default:
		w.read(rapid.IntRange(0, len(w.logs)-1).Draw(t, "log"))
	}
	w.Now = w.Now.Add(time.Millisecond)
}

// answer writes the receipt of an attempt.
func (w *dispatch) answer(t *rapid.T, a topics.Delivery) {
	if sent(w.TB, a).Cancel {
		w.write(logReceipts, w.receipt(a, topics.OutcomeFailed, peerwire.Answer{Code: peerwire.CodeUnreachable}))
		return
	}
	switch rapid.IntRange(0, 5).Draw(t, "answer") {
	case 0:
		w.write(logReceipts, w.offline(a))
	case 1:
		w.write(logReceipts, w.failedWith(a, 500, peerwire.Answer{Code: peerwire.CodePeerRefused, Detail: "no", Answered: true, Reached: true}))
	case 2:
		w.write(logReceipts, w.failedWith(a, 400, peerwire.Answer{Code: peerwire.CodePeerRefused, Detail: strings.Repeat("n", w.replySize/8)}))
	case 3:
		w.write(logReceipts, w.interrupted(a))
	default:
		result := fmt.Sprint(len(w.logs[logReceipts])) + strings.Repeat("r", rapid.IntRange(0, w.replySize).Draw(t, "size"))
		w.write(logReceipts, w.replied(a, func(r *peerwire.Reply) { r.Result = result }))
	}
}

// drain reads all records of a log.
func (w *dispatch) drain(log int) {
	for w.next[log] < len(w.logs[log]) {
		w.read(log)
	}
}

// finish reads all records, the logs in any order, and lets all deadlines pass.
func (w *dispatch) finish(t *rapid.T) {
	order := rapid.Permutation([]int{logCalls, logCommands, logReceipts, logOutputs, logControls}).Draw(t, "order")
	for {
		for _, log := range order {
			w.drain(log)
		}
		open := slices.ContainsFunc(w.Read().GetTasks(), isOpen)
		if !open && w.next[logCommands] == len(w.logs[logCommands]) {
			return
		}
		w.wait(20 * time.Second)
	}
}

// check checks that every task has ended in one way.
func (w *dispatch) check() {
	w.TB.Helper()
	for id := range w.called {
		require.NotEmpty(w.TB, w.written[id+"/result"], "call %s has a result", id)
	}
	for id, list := range w.written {
		run, step, _ := strings.Cut(id, "/")
		if !w.full {
			for _, e := range list {
				require.Equal(w.TB, list[0], e, "%s is written in one way", id)
			}
		}
		if w.crashes == 0 && step != "result" && !strings.HasPrefix(id, "turn-") {
			require.Len(w.TB, list, 1, "%s is written once", id)
		}
		if step == "sent" {
			require.NotEmpty(w.TB, w.written[run+"/end"], "%s has an end in the audit", run)
		}
		if step == "end" {
			require.NotEmpty(w.TB, w.written[run+"/sent"], "%s has a beginning in the audit", run)
		}
	}
}

func TestEveryTaskEndsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newDispatch(t)
		for range rapid.IntRange(0, 100).Draw(t, "moves") {
			w.move(t, dispatchMoves)
		}
		w.finish(t)
		w.check()
		for _, log := range w.logs { // repeat everything
			for _, e := range log {
				w.apply(e)
			}
		}
		w.finish(t)
		w.check()
	})
}

// After a crash, the group reads records again, in another order of topics and at another time, with another configuration, and
// its outputs since the cut are still there. All that it tells others about a task must be the same.
func TestEveryTaskEndsInOneWayAcrossCrashes(t *testing.T) {
	for name, begin := range map[string]func(machinetest.TB) *dispatch{"room": newDispatch, "full rows": newFullDispatch} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := begin(t)
				moves := append(slices.Clone(dispatchMoves), "cut", "crash", "crash", "restart", "drain", "drain")
				for range rapid.IntRange(0, 150).Draw(t, "moves") {
					w.move(t, moves)
				}
				w.finish(t)
				w.crash()
				w.finish(t)
				w.check()
			})
		})
	}
}

func TestEqualEventsOfTasksGiveEqualResults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := newDispatch(t)
		for range rapid.IntRange(0, 60).Draw(t, "moves") {
			one.move(t, dispatchMoves)
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
