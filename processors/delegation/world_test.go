package delegation

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

// world is one session's partition of each input topic, targets and a turn that answer, and the group that reads the topics in
// any order. Records stay where they are when the group crashes; the row and the positions return to those of the last cut.
type world struct {
	*harness
	logs    [5][]event // calls, replies, outputs, controls, peer replies
	next    [5]int     // position in each log
	saved   []byte     // the row of the last cut
	savedAt [5]int     // and its positions
	crashes int
	purges  int
	tasks   []machine.Effect // all messages of tasks that were ever sent
	written map[string][]any // what others are told, by ID
	order   []string         // the IDs of callback messages, without repeats
	called  map[string]bool  // IDs of the calls that were read
	large   bool
	lost    bool // an end was dead-lettered for lack of room
}

const (
	logCalls = iota
	logReplies
	logOutputs
	logControls
	logPeers
)

func newWorld(t machinetest.TB, change ...func(*Config)) *world {
	return &world{
		harness: newHarness(t, append(change, func(c *Config) { c.RememberFor = 1000 * 24 * time.Hour })...),
		written: map[string][]any{}, called: map[string]bool{},
	}
}

// newSessionsWorld returns a world in which results are announced also in the session.
func newSessionsWorld(t machinetest.TB) *world {
	return newWorld(t, func(c *Config) { c.Sessions = true })
}

// newFullWorld returns a world whose row has room for a few results.
func newFullWorld(t machinetest.TB) *world {
	w := newWorld(t)
	w.config.RecordLimit, w.config.RowLimit, w.large = 128<<10, 64<<10, true
	return w
}

func (w *world) write(log int, e event) { w.logs[log] = append(w.logs[log], e) }

// read applies the next record of a log, if there is one.
func (w *world) read(log int) {
	if w.next[log] == len(w.logs[log]) {
		return
	}
	e := w.logs[log][w.next[log]]
	w.next[log]++
	w.apply(e)
}

// apply applies an event and keeps what it writes.
func (w *world) apply(e event) {
	if c, ok := e.(called); ok {
		w.called[c.ID] = true
	}
	for _, m := range w.Handle(e) {
		if m.Reason != "" && w.large {
			w.lost = true // an end that came before its call after a crash: the row may have no room for all of them
			continue
		}
		require.NotEmpty(w.TB, m.Topic, "%v", m)
		switch v := m.Value.(type) {
		case topics.DelegationReply:
			r := w.reply(v)
			r.ID = m.ID
			w.write(logReplies, r)
			continue
		case topics.PeerCommand:
			w.tasks = append(w.tasks, m)
		case topics.Message:
			if isTask(v) {
				w.tasks = append(w.tasks, m)
			} else if w.written[m.ID] == nil {
				w.order = append(w.order, m.ID)
			}
		}
		w.written[m.ID] = append(w.written[m.ID], m.Value)
	}
}

// wait moves the clock by d and fires the deadline of the row if it is due.
func (w *world) wait(d time.Duration) {
	w.Now = w.Now.Add(d)
	if at, ok := w.Deadline(); ok && !at.After(w.Now) {
		w.apply(deadlineCame{})
	}
}

func (w *world) cut() { w.saved, w.savedAt = bytes.Clone(w.Row), w.next }

func (w *world) crash() {
	w.Row, w.next = bytes.Clone(w.saved), w.savedAt
	w.crashes++
}

// calls are those of the turns. The call of an ID is the same each time.
var calls = []string{
	`{"agent_id":"research","message":"x"}`, `{"agent_id":"books","message":"y","timeout_seconds":20}`,
	`{"agent_id":"research","message":"z"}`, `{"agent_id":"peer:hq-2","message":"x"}`, `{"agent_id":"nobody","message":"x"}`,
}

// moves are moves without crashes and purges; with more reads than writes, so that positions advance.
var moves = []string{
	"call", "call", "call", "cancel", "target", "target", "target", "turn", "turn", "again", "wait",
	"read", "read", "read", "read", "read", "read", "read", "read",
}

// move makes one random move.
func (w *world) move(t *rapid.T, moves []string) {
	turn := rapid.IntRange(0, 5).Draw(t, "turn")
	switch move := rapid.SampledFrom(moves).Draw(t, "move"); move {
	case "followup":
		if len(w.order) > 0 { // a turn without turn.Config.Channels does not say how deep it is
			use := fmt.Sprint("followup_", turn)
			e := w.callOf(SendTool, use, calls[0])
			e.ID = digests.Turn(w.key, rapid.SampledFrom(w.order).Draw(t, "callback")) + "/1/tool/0"
			if !w.wasWritten(e.ID) {
				w.write(logCalls, e)
			}
		}
	case "call":
		i := rapid.IntRange(0, len(calls)-1).Draw(t, "call")
		use := fmt.Sprint("call_", i%2) // models use them again
		e := w.callOf(SendTool, use, calls[i])
		if turn%3 != 0 {
			e = w.callOf(SendTool, use, calls[i], from(chat(fmt.Sprint("t", turn), fmt.Sprint("U", turn))))
		}
		e.ID = fmt.Sprintf("turn-%d/%d", turn, i)
		if !w.wasWritten(e.ID) { // its record has one timestamp
			w.write(logCalls, e)
		}
	case "cancel":
		e := w.cancellation(fmt.Sprint("cancel_", turn), fmt.Sprint("call_", turn%2))
		if !w.wasWritten(e.ID) {
			w.write(logCalls, e)
		}
	case "target":
		if len(w.tasks) > 0 {
			w.answer(t, rapid.SampledFrom(w.tasks).Draw(t, "task"))
		}
	case "turn":
		if len(w.order) > 0 {
			request, _, _ := strings.Cut(strings.TrimSuffix(rapid.SampledFrom(w.order).Draw(t, "callback"), "/message"), "\x00")
			w.write(logOutputs, w.output(request, "presented"))
		}
	case "purge":
		w.purges++
		w.write(logControls, w.control(topics.ActionPurge))
	case "again":
		log := rapid.IntRange(0, len(w.logs)-1).Draw(t, "log")
		if n := w.next[log]; n > 0 && log != logControls {
			w.apply(w.logs[log][rapid.IntRange(0, n-1).Draw(t, "record")])
		}
	case "wait":
		w.wait(rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, 30 * time.Second, 10 * time.Minute}).Draw(t, "time"))
	case "drain":
		w.drain(rapid.IntRange(0, len(w.logs)-1).Draw(t, "log"))
	case "cut":
		w.cut()
	case "crash":
		w.crash()
	default:
		w.read(rapid.IntRange(0, len(w.logs)-1).Draw(t, "log"))
	}
	w.Now = w.Now.Add(time.Millisecond)
}

func (w *world) wasWritten(id string) bool {
	return slices.ContainsFunc(w.logs[logCalls], func(e event) bool { return e.(called).ID == id })
}

// answer writes an end of a task. A target may answer more than once, and differently.
func (w *world) answer(t *rapid.T, m machine.Effect) {
	text := fmt.Sprint(len(w.logs[logReplies]), len(w.logs[logPeers]))
	if w.large {
		text += strings.Repeat("r", rapid.IntRange(0, 40<<10).Draw(t, "size"))
	}
	switch v := m.Value.(type) {
	case topics.Message:
		r := w.completed(sentTask{m, v}, text)
		if rapid.IntRange(0, 3).Draw(t, "fails") == 0 {
			r.Reply.Status, r.Reply.Code = topics.DelegationFailed, "think_failed"
		}
		w.write(logReplies, r)
	case topics.PeerCommand:
		w.write(logPeers, w.peerReply(topics.PeerReply{
			TaskID: v.TaskID, PeerID: v.PeerID, State: topics.PeerDone, Hash: v.Hash,
			Body: topics.Raw(`{"status":"success","result":"` + text + `"}`),
		}))
	}
}

// drain reads all records of a log.
func (w *world) drain(log int) {
	for w.next[log] < len(w.logs[log]) {
		w.read(log)
	}
}

// finish reads all records, the logs in any order, and lets deadlines pass until nothing is open and nothing waits.
func (w *world) finish(t *rapid.T) {
	order := rapid.Permutation([]int{logCalls, logReplies, logOutputs, logControls, logPeers}).Draw(t, "order")
	for range 10_000 {
		for _, log := range order {
			w.drain(log)
		}
		open := slices.ContainsFunc(w.Read().GetTasks(), isOpen)
		if !open && w.next[logReplies] == len(w.logs[logReplies]) && w.Read().GetInFlight() == nil {
			return
		}
		w.wait(time.Minute)
	}
	require.Fail(w.TB, "it does not end")
}

// check checks that every delegation has ended in one way, and that it was announced once if there is a place for it.
func (w *world) check() {
	w.TB.Helper()
	for id := range w.called {
		if (w.purges > 0 || w.large) && strings.HasPrefix(id, "turn/cancel") {
			continue // the turn of the call is purged too; or the delegation is forgotten for another one
		}
		require.NotEmpty(w.TB, w.written[id+"/result"], "call %s has an answer", id)
	}
	announced, ends := 0, 0
	for id, list := range w.written {
		if !strings.HasSuffix(id, "/end") && !strings.HasSuffix(id, "/open") {
			continue
		}
		d := list[0].(topics.Delegation)
		if strings.HasSuffix(id, "/open") && w.large {
			continue // after a crash, a call that had room may have none
		}
		if strings.HasSuffix(id, "/open") {
			require.NotEmpty(w.TB, w.written[strings.TrimSuffix(id, "open")+"end"], "%s has an end", id)
			continue
		}
		ends++
		if d.Channel != "" || w.config.Sessions {
			announced++
		}
	}
	for id, list := range w.written {
		for _, v := range list {
			if d, ok := v.(topics.Delegation); ok && w.purges > 0 && !w.lost {
				require.Equal(w.TB, list[0].(topics.Delegation).Status, d.Status, id)
				continue // whether it is announced depends on when the purge is read
			}
			if _, ok := v.(topics.ToolUseResult); ok && (w.large || w.purges > 0) {
				continue // a call without room may have it after a crash; the turn of one that cancels may be purged
			}
			if m, ok := v.(topics.Message); ok && (!isTask(m) || w.config.Sessions) && (w.large || w.purges > 0) {
				continue // its depth is not known when the delegation that led to it is forgotten; or its text may be cut more; the IDs of a purged session are free again after an hour
			}
			if _, ok := v.(topics.Delegation); ok && w.lost {
				continue
			}
			if d, ok := v.(topics.Delegation); ok && w.large {
				require.Equal(w.TB, list[0].(topics.Delegation).Status, d.Status, id)
				continue
			}
			require.Equal(w.TB, list[0], v, "%s is written in one way", id)
		}
	}
	if w.purges == 0 {
		require.Len(w.TB, w.order, announced, "every result that has a place is announced once")
	}
	seen := map[string]bool{}
	for _, id := range w.order {
		c := callbackOf(w.TB, w.written[id][0].(topics.Message))
		require.False(w.TB, seen[c.request], "%s is announced once", id)
		seen[c.request] = true
		if c.origin.Thread == "" {
			require.True(w.TB, w.config.Sessions, "%s has an origin", id)
			continue
		}
		require.Equal(w.TB, "U"+strings.TrimPrefix(c.origin.Thread, "t"), c.origin.User)
	}
	for id := range w.called {
		end := w.written["delegation/"+digestOf(ofTask, w.key, "front", id)+"/end"]
		said := w.written["callback/"+digestOf(ofCallback, w.key, "front", id)+"/message"]
		if len(end) > 0 && len(said) > 0 && !w.lost {
			require.Equal(w.TB, end[0].(topics.Delegation).Status, callbackOf(w.TB, said[0].(topics.Message)).note.Status)
		}
	}
	require.LessOrEqual(w.TB, len(w.order), ends)
}
