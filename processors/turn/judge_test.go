package turn

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/topics"
)

// summary is what a model is given, without times.
func summary(asked enriched) string {
	var said []string
	elements, _ := topics.Elements(topics.Splice(asked.History, asked.LatestInput))
	for _, raw := range elements {
		m, _ := topics.DecodeMessage(raw)
		said = append(said, *m.Role+"="+string(m.Content))
	}
	d := digests.Of("summary", said...)
	return hex.EncodeToString(d[:4]) + " of " + strconv.Itoa(len(said))
}

// plain is an output without what depends on the time it was made.
func plain(v value) string {
	switch v := v.(type) {
	case enriched:
		return fmt.Sprint(summary(v), *v.UserID, v.Cost != nil && *v.Cost > 0)
	case completed:
		var results []string
		for _, r := range v.Results {
			results = append(results, string(r.Result))
		}
		return fmt.Sprint(v.ExpectedCount, results, len(v.Expected))
	case toolMessage:
		return string(v.Content)
	case answered:
		cost := "none"
		if v.Cost != nil {
			cost = fmt.Sprint(*v.Cost)
		}
		return fmt.Sprint(v.Content, " cost ", cost, " to ", string(v.ReplyTo), v.Error)
	case called:
		return *v.ToolUseID
	case streamed:
		if v.Result != nil {
			return string(topics.EncodeAgentEvent(topics.AgentEvent{Result: v.Result, Settles: v.Settles}))
		}
		return fmt.Sprint(string(v.Event), v.Settles, string(v.Request))
	case replyStreamed:
		return string(v.Event)
	default:
		return fmt.Sprintf("%T", v)
	}
}

// judge checks the promises once everything has come to rest.
func (w *world) judge(exact bool) {
	w.tb.Helper()
	for id, n := range w.counts {
		if exact {
			require.Equal(w.tb, 1, n, "%s is written once", id)
		}
	}
	w.judgeMessages()
	w.judgeCalls()
	w.judgeStreams()
	if s := w.state(); s != nil {
		require.Empty(w.tb, s.Waiting)
		require.Nil(w.tb, s.Turn)
	}
}

// judgeMessages checks that each message has one output.
func (w *world) judgeMessages() {
	w.tb.Helper()
	ends := map[string]int{}
	for id := range w.counts {
		if turn, _, kind := partsOf(id); kind == "output" {
			ends[turn]++
		}
	}
	require.Len(w.tb, ends, len(w.scripts), "every message ends")
	for turn, n := range ends {
		require.Equal(w.tb, 1, n, turn)
	}
}

// judgeCalls checks that each call has one result.
func (w *world) judgeCalls() {
	w.tb.Helper()
	calls := map[string]int{}
	for id := range w.counts {
		if turn, step, kind := partsOf(id); kind == "tool-use" || kind == "tool-use-dlq" {
			calls[turn+"/"+step]++
		}
	}
	for step, n := range calls {
		require.True(w.tb, strings.HasPrefix(w.outputs[step+"/all-complete/0"], strconv.Itoa(n)+" "),
			"every call of %s has one result: %s", step, w.outputs[step+"/all-complete/0"])
	}
}

// judgeStreams checks that each turn ends its event stream once, and that every call that ran has its result in it.
func (w *world) judgeStreams() {
	w.tb.Helper()
	ends := 0
	for id := range w.counts {
		turn, step, _ := partsOf(id)
		if strings.HasSuffix(id, "/event/1000000") {
			ends++
			require.Contains(w.tb, w.outputs, turn+"/0/output/0")
		}
		if name, ok := parseStepName(id, called{}.kind()); ok {
			result := fmt.Sprintf("%s/%s/event/%d", turn, step, seqOf(int(name.call), callResult))
			require.Contains(w.tb, w.outputs, result)
		}
	}
	require.Equal(w.tb, len(w.scripts), ends)
}

// partsOf are the turn, the step and the kind in the ID of a record.
func partsOf(id string) (turn, step, kind string) {
	turn, rest, _ := strings.Cut(id, "/")
	step, kind, _ = strings.Cut(rest, "/")
	kind, _, _ = strings.Cut(kind, "/")
	return turn, step, kind
}
