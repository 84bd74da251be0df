package turn

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// world plays everybody around one session. The workers are at-least-once and deterministic; what they write depends on
// what they read. So any order in which the records of different topics are handed over is one that Kafka may choose.
type world struct {
	*play
	scripts []script
	queues  map[string][]queued // by topic, what is not handed over yet
	sent    []queued            // what was handed over, oldest first
	outputs map[string]string   // by id, without times
	counts  map[string]int
	turns   map[string]int // script by turn id
	late    map[int]bool   // scripts whose route was handed over
	early   map[string]int // by tool_use_id, the script that used it first, where its result comes early
	// inMemory keeps the state as Apply returned it, instead of encoding and decoding it.
	inMemory bool
	live     *turnrow.State
	// once are the ids that the workers answered, where they answer none twice. They name what they answer then.
	once map[string]bool
}

// script is what happens to a message.
type script struct {
	Route   string // "", "named", "unnamed"
	Steps   []stepScript
	End     string // "answer", "fail", "silence", "no end"
	Rethink bool   // the model answers every step twice, in other bytes
}

type stepScript struct {
	Tools  []string // "ok", "early", "again", "fail", "missing", "blank", "same"
	SameID bool     // the ids are those of every turn
}

type queued struct {
	topic  string
	event  event
	script int  // the message it belongs to
	ends   bool // it ends the turn
}

var inputs = []string{
	"message-input", "reply-to", "think-request-response", "think-dlq", "tool-use-result", "tool-use-dlq",
}

func newWorld(t tb, scripts []script) *world {
	w := &world{
		play: newPlay(t), scripts: scripts, queues: map[string][]queued{}, outputs: map[string]string{},
		counts: map[string]int{}, turns: map[string]int{}, late: map[int]bool{}, early: map[string]int{},
	}
	w.rules.Events = true
	w.restart()
	for k, s := range scripts {
		at := w.now.Add(time.Duration(k) * time.Minute)
		m := message(text(k))
		if s.Route == "named" {
			m = requestMessage(text(k), "r"+strconv.Itoa(k))
			w.write("reply-to", k, false, fmt.Sprintf(`{"to":%d,"request_id":"r%d"}`, k, k), stamped(at))
		}
		if s.Route == "unnamed" {
			w.write("reply-to", k, false, fmt.Sprintf(`{"to":%d}`, k), stamped(at))
		}
		w.write("message-input", k, false, m, stamped(at.Add(time.Second)))
	}
	return w
}

func text(k int) string { return "question " + strconv.Itoa(k) }

// naming is the id of what a worker writes about a record, where the workers name it.
func (w *world) naming(id, suffix string) (opts []recordOption) {
	if w.once != nil {
		opts = append(opts, header(topics.HeaderID, id+suffix))
	}
	return opts
}

func (w *world) write(topic string, script int, ends bool, value string, opts ...recordOption) {
	w.tb.Helper()
	e, ok := w.event(topic, []byte(value), opts...)
	require.True(w.tb, ok, value)
	w.queues[topic] = append(w.queues[topic], queued{topic, e, script, ends})
}

// ready are the topics whose next record can be handed over. Routes are written ahead of their messages: what ends a
// turn does not overtake its route.
func (w *world) ready() (list []string) {
	for _, topic := range inputs {
		q := w.queues[topic]
		if len(q) > 0 && !(q[0].ends && w.scripts[q[0].script].Route != "" && !w.late[q[0].script]) {
			list = append(list, topic)
		}
	}
	return list
}

// deliver hands over the next record of a topic.
func (w *world) deliver(topic string) {
	next := w.queues[topic][0]
	w.queues[topic] = w.queues[topic][1:]
	w.sent = append(w.sent, next)
	if topic == "reply-to" {
		w.late[next.script] = true
	}
	w.handle(next.event)
}

func (w *world) handle(e event) {
	w.tb.Helper()
	w.now = w.now.Add(time.Millisecond)
	if !w.inMemory {
		w.react(w.apply(e))
		return
	}
	out, err := applied(w.live, e, nil, w.now, w.rules)
	require.NoError(w.tb, err)
	if out.Changed {
		w.live = out.State
	}
	w.keep(out)
	w.react(out.Effects)
}

// losable is how many of the last n hand-overs a crash may lose: not the end of a call together with the result of a
// later turn's call of the same id. Both results would come again, the later one perhaps first, and nothing in it says
// that it is not for the first call. (A crash loses what was not written for milliseconds, not a turn and the next.)
func (w *world) losable(n int) int {
	last := map[string]int{} // by tool_use_id, the last script whose result is still to come
	for _, q := range w.queues["tool-use-result"] {
		id := *q.event.(toolAnswered).Result.ToolUseID
		last[id] = max(last[id], q.script)
	}
	for i, q := range slices.Backward(w.sent) {
		lost := len(w.sent) - i
		if lost > n {
			break
		}
		if e, ok := q.event.(toolAnswered); ok {
			id := *e.Result.ToolUseID
			if last[id] > q.script {
				return lost - 1
			}
			last[id] = q.script
		}
	}
	return n
}

// crash loses the rows written by the last n hand-overs, not their outputs, and hands those records over again.
func (w *world) crash(row []byte, n int) {
	w.row, w.parts = row, maps.Clone(w.partsOf[string(row)])
	if w.parts == nil {
		w.parts = map[uint32][]byte{}
	}
	again := w.sent[len(w.sent)-n:]
	w.sent = w.sent[:len(w.sent)-n]
	for _, q := range slices.Backward(again) {
		w.queues[q.topic] = append([]queued{q}, w.queues[q.topic]...)
		if q.topic == "reply-to" {
			w.late[q.script] = false
		}
	}
}

// settle lets time pass once nothing is left to hand over, until nothing waits for it either.
func (w *world) settle() {
	for range 1000 {
		if list := w.ready(); len(list) > 0 {
			w.deliver(list[0])
			continue
		}
		s := w.state()
		if s == nil || s.Turn == nil {
			return
		}
		w.now = time.UnixMilli(s.Turn.DeadlineMs)
		w.handle(deadlineCame{Session: w.key})
	}
	require.Fail(w.tb, "a turn hangs")
}

// react plays the workers.
func (w *world) react(es effects) {
	w.tb.Helper()
	for _, e := range es {
		m, ok := e.(emit)
		if !ok {
			continue
		}
		value := plain(m.Value)
		if before, ok := w.outputs[m.ID]; ok {
			require.Equal(w.tb, before, value, "a repeat says the same: %s", m.ID)
		}
		w.outputs[m.ID] = value
		w.counts[m.ID]++
		turn, rest, _ := strings.Cut(m.ID, "/")
		number, _, _ := strings.Cut(rest, "/")
		step, _ := strconv.Atoi(number)
		if w.once[m.ID] {
			continue
		}
		if w.once != nil {
			w.once[m.ID] = true
		}
		switch v := m.Value.(type) {
		case enriched:
			if step == 1 {
				w.turns[turn] = scriptOf(v)
			}
			w.think(w.turns[turn], step, v, m.ID)
		case called:
			w.use(v, m.ID)
		}
	}
}

func scriptOf(v enriched) int {
	m, _ := topics.DecodeMessage(v.LatestInput)
	k, _ := strconv.Atoi(strings.TrimPrefix(topics.Text(m.Content), "question "))
	return k
}

// think is the model: what it says depends on all that it is given.
func (w *world) think(k, step int, asked enriched, id string) {
	s := w.scripts[k]
	cost := 1.0
	if asked.Cost != nil {
		cost += *asked.Cost
	}
	asked.History = topics.Splice(asked.History)
	more := fmt.Sprintf(`"total_session_cost":%v,`, cost)
	ends := step > len(s.Steps)
	switch {
	case !ends:
		more += w.calls(k, step, s.Steps[step-1], strings.Replace(id, "/enriched/0", "/tool-use/", 1))
	case s.End == "answer":
		more += saying(fmt.Sprintf("answer %d to %s", k, summary(asked)))
	case s.End == "fail":
		w.write("think-dlq", k, true, `{"latest_input":`+string(asked.LatestInput)+`}`, w.naming(id, "/failure")...)
		return
	case s.End == "no end":
		more += `"end_turn":false`
	default:
		return
	}
	for i := range 2 {
		if i == 0 || s.Rethink && s.End != "no end" {
			w.write("think-request-response", k, ends,
				response(asked, more+`,"timestamp":"`+strconv.Itoa(i)+`"`), w.naming(id, "/"+strconv.Itoa(i))...)
		}
	}
}

func (w *world) calls(k, step int, s stepScript, ids string) string {
	items := make([]string, len(s.Tools))
	for i, deed := range s.Tools {
		id := fmt.Sprintf("t-%d-%d-%d-%s", k, step, i, deed)
		if s.SameID {
			id = fmt.Sprintf("t-%d-%d-%s", step, i, deed)
		}
		switch deed {
		case "blank":
			id = " "
		case "same":
			id = fmt.Sprintf("t-%d-%d-0-%s", k, step, s.Tools[0])
		case "early":
			// The result is sent before its call only if no call had the id before. Otherwise it would be taken for a late
			// result, because nothing in it says which of the calls it answers. Later uses are answered after their call.
			if _, used := w.early[id]; !used {
				w.early[id] = k
			}
			if w.early[id] == k {
				w.result(id, k, "early", ids+strconv.Itoa(i))
			}
		}
		items[i] = fmt.Sprintf(`{"tool_use_id":%q,"name":"look","input":{"k":%d}}`, id, k)
	}
	return `"tool_uses":[` + strings.Join(items, ",") +
		`],"last_input_response":[{"role":"assistant","content":"calling"}]`
}

func (w *world) result(id string, k int, said, call string) {
	if (len(id)+k)%3 == 0 { // so much that it is stored in parts, and the conversation with it
		said = strings.Repeat(said+" ", 3000/len(said))
	}
	w.write("tool-use-result", k, false, toolResult(id, fmt.Sprint(said, k)), w.naming(call, "/"+said[:2])...)
}

// use is the tool worker: the same call gives the same bytes.
func (w *world) use(c called, call string) {
	id := *c.ToolUseID
	var input struct{ k int }
	_, _ = fmt.Sscanf(string(c.Input), `{"k":%d}`, &input.k)
	deed := id[strings.LastIndexByte(id, '-')+1:]
	switch deed {
	case "missing": // nobody says anything
	case "early":
		if w.early[id] != input.k {
			w.result(id, input.k, "early", call)
		} // else it was said already
	case "fail":
		w.write("tool-use-dlq", input.k, false, fmt.Sprintf(`{"tool_use_id":%q,"name":"look","input":{"k":%d}}`, id, input.k),
			append(w.naming(call, ""), header(topics.HeaderErrorReason, "broken"))...)
	default:
		w.result(id, input.k, "ok", call)
		if deed == "again" {
			w.result(id, input.k, "other", call)
		}
	}
}
