package turn

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/topics"
)

// full is a session whose row is full most of the time, and what was promised to it. That no row exceeds its limit as it
// is written is checked by play.
type full struct {
	*play
	n        int
	accepted map[string]bool // by turn ID
	outputs  map[string]bool // by turn ID
	requests []string        // those that are remembered
	asked    *enriched
	open     []string // tool calls
	repeats  []event  // that were applied
	judge    func(effects)
}

func newFull(t tb) *full {
	return &full{
		play:     newPlay(t, smallRow, func(r *rules) { r.RememberCount, r.RouteTTL = 1200, time.Hour }),
		accepted: map[string]bool{}, outputs: map[string]bool{},
	}
}

// handle applies an event and judges what it led to.
func (f *full) handle(e event) effects {
	f.tb.Helper()
	f.now = f.now.Add(time.Millisecond)
	before := f.row
	es := f.play.apply(e)
	if f.judge != nil {
		f.judge(es)
	}
	for _, effect := range es {
		m, ok := effect.(emit)
		if !ok {
			continue
		}
		turn, _, _ := strings.Cut(m.ID, "/")
		switch v := m.Value.(type) {
		case answered:
			require.False(f.tb, f.outputs[turn], "one output")
			f.outputs[turn] = true
			f.asked = nil
		case enriched:
			f.asked, f.open = &v, nil
		case called:
			f.open, f.asked = append(f.open, *v.ToolUseID), nil
		}
	}
	unfinished := map[string]bool{}
	if s := f.state(); s != nil {
		for a := range (&session{row: s}).unfinished() {
			unfinished[a.TurnId] = true
		}
	}
	for turn := range f.accepted {
		require.True(f.tb, f.outputs[turn] != unfinished[turn], "a message ends in its output or is not finished: %v %v %v", f.outputs[turn], es.ids(), es.letters())
	}
	if e.source() != nil && string(f.row) != string(before) {
		f.repeats = append(f.repeats, e)
	}
	return es
}

func (f *full) size(t *rapid.T) string {
	return strings.Repeat("x", rapid.SampledFrom([]int{3, 100, 900, 4000, 15_000, 40_000}).Draw(t, "size"))
}

func (f *full) ask(t *rapid.T) {
	f.n++
	value, request := message("q"+f.size(t)), ""
	if rapid.IntRange(0, 3).Draw(t, "named") > 0 {
		request = fmt.Sprint("new", f.n) + strings.Repeat("i", rapid.SampledFrom([]int{0, 0, 1000}).Draw(t, "id"))
		value = requestMessage("q"+f.size(t), request)
	}
	e := f.recordOf("message-input", value).(messageArrived)
	turn := turnID(f.key, e.Cause)
	f.accepted[turn] = true
	es := f.handle(e)
	for _, l := range es.letters() {
		if l == reasonRowSize {
			return // it was answered and is not remembered
		}
	}
	if request != "" {
		f.requests = append(f.requests, request)
	}
}

// askAgain repeats a request ID in another record.
func (f *full) askAgain(t *rapid.T) {
	if len(f.requests) == 0 {
		return
	}
	request := rapid.SampledFrom(f.requests).Draw(t, "request")
	es := f.handle(f.recordOf("message-input", requestMessage("again"+f.size(t), request)))
	require.Equal(t, []string{reasonSameRequest}, es.letters(), "a request ID is remembered for its time")
	require.Len(t, es, 1)
}

func (f *full) respond(t *rapid.T) {
	if f.asked == nil {
		return
	}
	asked := *f.asked
	if rapid.IntRange(0, 9).Draw(t, "compact") == 0 {
		asked.History = nil
	}
	if rapid.Bool().Draw(t, "answer") {
		f.handle(f.recordOf("think-request-response", response(asked, saying(f.size(t)))))
		return
	}
	var ids []string
	for i := range rapid.SampledFrom([]int{1, 2, 3, 150}).Draw(t, "calls") {
		ids = append(ids, fmt.Sprintf("t%d-%d", f.n, i))
	}
	f.n++
	more := strings.Replace(calling(ids...), `"content":[]`, `"content":"`+f.size(t)+`"`, 1)
	f.handle(f.recordOf("think-request-response", response(asked, more)))
}

func (f *full) answerCall(t *rapid.T) {
	id := "t" + fmt.Sprint(f.n) + "-0"
	if len(f.open) > 0 {
		id, f.open = f.open[0], f.open[1:]
	}
	f.handle(f.recordOf("tool-use-result", toolResult(id, f.size(t))))
}

// due fires the deadline; it has to be done then.
func (f *full) due(*rapid.T) {
	at, ok := rows.Deadline(f.row)
	if !ok || at > f.now.Add(6*time.Hour).UnixMilli() {
		return
	}
	f.now = time.UnixMilli(max(at, f.now.UnixMilli())).UTC()
	f.handle(deadlineCame{Session: f.key})
	if at, ok = rows.Deadline(f.row); ok {
		require.Greater(f.tb, at, f.now.UnixMilli()-10, "it does not come again")
	}
}

func (f *full) moves() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"ask":      f.ask,
		"ask more": f.ask,
		"ask many": func(t *rapid.T) {
			for range 8 {
				f.n++
				f.accepted[turnID(f.key, fmt.Sprint("offset-", f.offset+1))] = true
				es := f.handle(f.recordOf("message-input", requestMessage("q", fmt.Sprint("new", f.n))))
				if len(es.letters()) == 0 {
					f.requests = append(f.requests, fmt.Sprint("new", f.n))
				}
			}
		},
		"ask again":     f.askAgain,
		"respond":       f.respond,
		"respond again": f.respond,
		"result":        f.answerCall,
		"results":       f.answerCall,
		"route": func(t *rapid.T) {
			f.handle(f.recordOf("reply-to", `{"to":"`+f.size(t)+`"}`))
		},
		"cancel": func(*rapid.T) {
			f.handle(f.recordOf("session-control", `{"action":"cancel"}`))
		},
		"deadline": f.due,
		"repeat": func(t *rapid.T) {
			if len(f.repeats) == 0 {
				return
			}
			// An event adds a memory of its record and one of each turn that it ends: of its own message, or of those that
			// were open or waited before.
			sure := (recentMemories - f.rules.QueueLimit - 1) / 2
			last := f.repeats[max(0, len(f.repeats)-sure):]
			require.Empty(t, f.handle(rapid.SampledFrom(last).Draw(t, "repeat")).ids(), "a repeat changes nothing")
		},
	}
}

// finish lets time pass until every message has its output.
func (f *full) finish() {
	f.tb.Helper()
	for i := 0; f.state() != nil && f.state().Turn != nil; i++ {
		require.Less(f.tb, i, 100, "a turn hangs")
		f.now = time.UnixMilli(max(f.state().DeadlineMs, f.now.UnixMilli()))
		f.handle(deadlineCame{Session: f.key})
	}
	require.Len(f.tb, f.outputs, len(f.accepted))
}

// A session whose row is full keeps its promises: every message ends in one output, no request is run twice, a repeated
// record changes nothing.
func TestFullRowKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFull(t)
		if rapid.Bool().Draw(t, "full") {
			f.fill(rapid.IntRange(0, 400).Draw(t, "memories"), rapid.IntRange(0, 600).Draw(t, "left"))
		}
		t.Repeat(f.moves())
		f.finish()
	})
}

// So does one whose limit was lowered below its row. Its deadlines are done once.
func TestRowOverALoweredLimitKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFull(t)
		f.rules.RecordLimit, f.rules.RowLimit = 2*minRecord, 2*minRecord
		moves := f.moves()
		lowered := false
		moves["lower"] = func(t *rapid.T) {
			if !lowered && f.row != nil && f.play.size() > minRecord-rowMargin {
				f.rules.RecordLimit, f.rules.RowLimit = minRecord, minRecord-rowMargin
				lowered = true
			}
		}
		t.Repeat(moves)
		f.finish()
	})
}

// Whatever is in a row: more is given up only once all that costs less is gone, nothing is given up in vain, and no request
// ID at all.
func TestLeastLossIsGivenUpFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPlay(t, smallRow)
		count := func(name string, most int) int { return rapid.IntRange(0, most).Draw(t, name) }
		size := func(name string) string { return strings.Repeat("x", count(name, 12_000)) }
		asked := p.ask("open")
		for range count("waiting", 3) {
			p.send("message-input", message(size("message")))
		}
		for i := range count("held", 3) {
			p.result(fmt.Sprint("early", i), size("result"))
		}
		for i := range count("held for steps to come", 3) {
			p.send("tool-use-result", toolResult("t1", size("result")),
				header(topics.HeaderID, fmt.Sprintf("%032d/1/tool-use/0", i)))
		}
		s := p.state()
		for i := range count("requests", 300) {
			s.Requests = remember(s.Requests, digests.Of(ofRequest, fmt.Sprint(i)), p.now, time.Hour, 1000)
		}
		for i := range count("causes", 500) {
			s.Causes = remember(s.Causes, digests.Of(ofCause, fmt.Sprint(i)), p.now, time.Hour, 1000)
		}
		for i := range count("calls", 500) {
			s.Calls = remember(s.Calls, digests.Of(ofCall, fmt.Sprint(i)), p.now, time.Hour, 1000)
		}
		if stateSize(s) > p.rules.RowLimit {
			t.Skip("the row would be over its limit")
		}
		p.keepState(s)
		before := p.state()
		more := saying(strings.Repeat("a", count("answer", 70_000)))
		if rapid.Bool().Draw(t, "tools") {
			more = strings.Replace(calling("t1"), `"content":[]`, `"content":"`+strings.Repeat("a", count("answer", 70_000))+`"`, 1)
		}
		e := p.recordOf("think-request-response", response(asked, more))
		out, err := applied(s, e, nil, p.now, p.rules)
		require.NoError(t, err)
		after := out.State
		require.NotNil(t, after)
		require.Equal(t, before.Requests, after.Requests)

		var queueFull, tooLarge, heldBack int
		for _, o := range emitted[answered](out.Effects) {
			switch {
			case o.Error == nil:
			case o.Error.Code == topics.CodeQueueFull:
				queueFull++
			default:
				tooLarge++
			}
		}
		for _, l := range effects(out.Effects).letters() {
			if l == reasonNoRoom {
				heldBack++
			}
		}
		forgot := len(after.Causes) < len(before.Causes) || len(after.Calls) < len(before.Calls)
		// The event, its bytes, and the turns that it ended are remembered after the others were forgotten.
		older := len(after.Causes) > (recentMemories+6)*memorySize || len(after.Calls) > (recentMemories+2)*memorySize
		if heldBack > 0 {
			require.False(t, older, "held records go after older memories")
		}
		if queueFull > 0 {
			require.Equal(t, len(before.Turn.Held)+len(before.Early), heldBack, "messages go after held records")
			require.False(t, older)
		}
		if tooLarge > 0 {
			require.Zero(t, queueFull+heldBack, "the turn ends where these would not make room")
			require.False(t, forgot)
		}
	})
}
