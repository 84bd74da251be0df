package folder

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/topics"
)

// foldedLines folds events, one per line.
func foldedLines(t testing.TB, lines ...string) *Folder {
	t.Helper()
	f := NewFolder()
	for _, line := range lines {
		e, err := DecodeEvent(topics.Raw(line))
		require.NoError(t, err)
		require.NoError(t, f.Add(e))
	}
	return f
}

const (
	payCall    = `{"type":"tool_call","id":"t1","name":"Pay the invoice","input":{"eur":1}}`
	payRequest = `{"type":"interaction_request","id":"r1","kind":"user_approval","payload":{"toolCallId":"t1",` +
		`"toolCall":{"toolCallId":"t1","title":"Pay","resolvedName":"pay","rawInput":{"eur":1.0}}}}`
	askRequest = `{"type":"interaction_request","id":"r2","kind":"user_input","payload":{"question":"Which?"}}`
	paused     = `{"type":"done","stopReason":"paused"}`
)

func TestInteractionsOfATurn(t *testing.T) {
	f := foldedLines(t, payCall, payRequest, askRequest, paused)
	list := f.Interactions()
	require.Len(t, list, 2)
	pay, ask := list[0], list[1]
	require.Equal(t, Interaction{
		ID: "r1", Kind: "user_approval", ToolUseID: "t1", Tool: "pay", Names: []string{"pay", "Pay", "Pay the invoice"},
		Args: topics.Raw(`{"eur":1.0}`), Payload: pay.Payload,
	}, pay)
	require.Equal(t, Interaction{Index: 1, ID: "r2", Kind: "user_input", Payload: topics.Raw(`{"question":"Which?"}`)}, ask)

	// Answered requests keep their indexes.
	for line, answered := range map[string][2]bool{
		`{"type":"interaction_response","id":"r1","kind":"user_approval"}`: {true, false},
		`{"type":"tool_result","id":"t1","output":"paid"}`:                 {true, false},
		`{"type":"interaction_response","id":"r2"}`:                        {false, true},
	} {
		list := foldedLines(t, payCall, payRequest, askRequest, paused, line).Interactions()
		require.Equal(t, answered, [2]bool{list[0].Answered, list[1].Answered}, line)
	}
}

func TestInteractionHasTheArgumentsOfItsCall(t *testing.T) {
	for _, tt := range []struct{ payload, args, tool, call string }{
		{`{"toolCallId":"t1"}`, `{"eur":1}`, "Pay the invoice", "t1"},
		{`{"toolCallId":"t1","toolName":"pay","input":{"eur":2}}`, `{"eur":2}`, "pay", "t1"},
		{`{"toolCall":{"id":"t1","input":{"eur":3},"rawInput":null,"spec":{"name":"pay"}}}`, `{"eur":3}`, "pay", "t1"},
		{`{"toolCall":{"id":7,"kind":"execute"}}`, ``, "execute", "7"},
		{`{"toolCall":{"id":[7]}}`, ``, "", ""},
		{`"text"`, ``, "", ""},
	} {
		f := foldedLines(t, payCall, `{"type":"interaction_request","data":{"payload":`+tt.payload+`}}`)
		a := f.Interactions()[0]
		require.Equal(t, tt.args, string(a.Args), tt.payload)
		require.Equal(t, tt.tool, a.Tool, tt.payload)
		require.Equal(t, tt.call, a.ToolUseID, tt.payload)
	}
	require.Empty(t, foldedLines(t, `{"type":"interaction_request","data":[1]}`).Interactions(), "malformed")
	require.Len(t, foldedLines(t, `{"type":"interaction_request"}`).Interactions(), 1)
}

// After a pause the run goes on: the last done event counts, and only requests without an answer are pending.
func TestEventsAfterAPauseAreFolded(t *testing.T) {
	answer := `{"type":"interaction_response","id":"r1"}`
	text := `{"type":"message","text":"Paid."}`
	for _, tt := range []struct {
		name          string
		lines         []string
		stop, pending string
		waiting       int
	}{
		{"paused", []string{payRequest, paused}, `"paused"`, "r1", 1},
		{"resumed", []string{payRequest, paused, answer, text, `{"type":"done"}`}, ``, "", 0},
		{"resumed without a response", []string{payRequest, paused, text, `{"type":"done","stopReason":"end_turn"}`}, `"end_turn"`, "", 1},
		{"paused again", []string{payRequest, paused, answer, askRequest, paused}, `"paused"`, "r2", 1},
		{"done repeats the pause", []string{payRequest, paused, paused}, `"paused"`, "r1", 1},
	} {
		b, err := foldedLines(t, tt.lines...).Batch(End{})
		require.NoError(t, err, tt.name)
		require.Equal(t, tt.stop, string(b.StopReason), tt.name)
		require.Equal(t, tt.pending, idText(lookup(b.PendingInteraction, "id")), tt.name)
		require.Len(t, b.Pending, tt.waiting, tt.name)
	}
}

func TestDecidedInteractionsAreNotPending(t *testing.T) {
	f := foldedLines(t, payRequest, askRequest, paused)
	for _, tt := range []struct {
		decided []int
		last    string
		waiting int
	}{{nil, "r2", 2}, {[]int{1}, "r1", 1}, {[]int{0}, "r2", 1}, {[]int{0, 1}, "", 0}, {[]int{7}, "r2", 2}} {
		b, err := f.Batch(End{Decided: tt.decided})
		require.NoError(t, err)
		require.Equal(t, tt.last, idText(lookup(b.PendingInteraction, "id")), "%v", tt.decided)
		require.Len(t, b.Pending, tt.waiting, "%v", tt.decided)
	}
}

// A log has the same interactions as its events, so that a gate has the same ID in every process.
func TestInteractionsOfALogAreThoseOfItsEvents(t *testing.T) {
	lines := []string{
		payCall, payRequest, askRequest, paused, `{"type":"tool_call","id":"t1","input":{"eur":9}}`,
		`{"type":"interaction_response","id":"r1"}`, `{"type":"tool_result","id":"t1","output":"x"}`,
		`{"type":"interaction_request"}`, `{"type":"interaction_request","data":1}`, `{"type":"done"}`,
		`{"type":"message_delta","id":"m","delta":"x"}`, `{"type":"message_start","id":"m"}`,
	}
	rapid.Check(t, func(t *rapid.T) {
		direct, log := NewFolder(), Log{}
		for _, line := range rapid.SliceOfN(rapid.SampledFrom(lines), 0, 30).Draw(t, "events") {
			e, err := DecodeEvent(topics.Raw(line))
			require.NoError(t, err)
			require.NoError(t, direct.Add(e))
			log = log.Append(e)
		}
		again := NewFolder()
		require.NoError(t, again.AddLog(log))
		require.Equal(t, direct.Interactions(), again.Interactions())
	})
}

func TestGateCall(t *testing.T) {
	for _, turn := range []string{"t", "a/b", "t/1/interaction/2", "", "/"} {
		got, attempt, index, ok := ParseGateCall(GateCall(turn, 12, 7))
		require.True(t, ok, turn)
		require.Equal(t, turn, got)
		require.EqualValues(t, 12, attempt)
		require.Equal(t, 7, index)
	}
	for _, call := range []string{
		"", "t", "t/1/tool-use/0", "t/1/interaction/", "t/1/interaction/-1", "t/1/interaction/01", "t/0/interaction/1",
		"t/+1/interaction/1", "t/1/interaction/99999999999", "1/interaction/1", "t/1/interaction/1/",
	} {
		_, _, _, ok := ParseGateCall(call)
		require.False(t, ok, call)
	}
}

func FuzzParseGateCall(f *testing.F) {
	f.Add("t/1/interaction/0")
	f.Add("t/1/tool-use/0")
	f.Fuzz(func(t *testing.T, call string) {
		if turn, attempt, index, ok := ParseGateCall(call); ok {
			require.Equal(t, call, GateCall(turn, attempt, index))
			require.True(t, strings.HasPrefix(call, turn))
		}
	})
}
