package bridge_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/fold/bridge"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

func ptr[T any](v T) *T { return &v }

func TestResponsesAndResultsBecomeATurn(t *testing.T) {
	var b bridge.Think
	require.Equal(t, `{"type":"thought","text":"hm"}
{"type":"message","text":"Let me look."}
{"type":"tool_call","id":"a","name":"berth","input":{"at":"18:00","n":9007199254740993}}
{"type":"tool_call","id":"b","name":"tide","input":{}}
{"type":"usage","input":10,"output":2,"total":12}`, data(t)(b.Response(topics.ThinkResponse{
		LastInputResponse: topics.Raw(`[null,{"role":"user","content":"no"},{"role":"assistant","content":[` +
			`{"type":"thinking","thinking":"hm"},{"type":"text","text":"Let me look."},{"type":"text","text":""},` +
			`{"type":"tool_use","id":"a","name":"berth","input":{"at":"18:00",` +
			`"n":9007199254740993}},{"type":"of_tomorrow"},7]}]`),
		ToolUses: []topics.ToolUseItem{
			{ToolUseID: ptr("a"), Name: ptr("berth"), Input: topics.Raw(`{"at":"18:00"}`)},
			{ToolUseID: ptr("b"), Name: ptr("tide"), Input: topics.Raw(`{}`)},
			{Name: ptr("nameless")},
		},
		ThinkInputTokens: 10, ThinkOutputTokens: 2,
	})))
	require.Equal(t, `{"type":"tool_result","id":"a","output":"{\"berth\":\"N4\"}","data":{"berth":"N4"},"isError":false}
{"type":"tool_result","id":"b","isError":true}`, data(t)(b.Results(topics.ToolResults{Results: []topics.ToolUseResult{
		{ToolUseID: ptr("a"), Result: topics.Raw(`{"berth":"N4"}`), Status: ptr("success")},
		{ToolUseID: ptr("b"), Status: ptr("error")},
		{ToolUseID: ptr("a"), Result: topics.Raw(`"again"`)},
		{},
	}})))
	require.Equal(t, `{"type":"message","text":"N4."}
{"type":"message","text":"Anything else?"}
{"type":"usage","input":30,"output":5,"total":35}
{"type":"done","stopReason":"end_turn"}`, data(t)(b.Response(topics.ThinkResponse{
		LastInputResponse: topics.Raw(`[{"role":"assistant","content":"N4."},{"role":"assistant",` +
			`"content":["Anything else?"]}]`),
		ThinkInputTokens: 20, ThinkOutputTokens: 3, EndTurn: true,
	})))
}

func TestFailuresEndTheTurn(t *testing.T) {
	var b bridge.Think
	require.Equal(t, "{\"type\":\"error\",\"message\":\"quota\"}\n{\"type\":\"done\"}",
		data(t)(b.Failure(topics.ThinkFailure{Reason: ptr("quota")})))
	require.Contains(t, data(t)(b.Failure(topics.ThinkFailure{})), "think step failed")
}

func ExampleThink() {
	var b bridge.Think
	events, err := b.Response(topics.ThinkResponse{
		LastInputResponse: topics.Raw(`[{"role":"assistant","content":"Berth N4 is free."}]`),
		EndTurn:           true,
	})
	if err != nil {
		panic(err)
	}
	batch, err := folder.Fold(events)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", batch.AppendEnvelope(nil))
	// Output:
	// {"messages":[{"role":"assistant","content":"Berth N4 is free."}],"stop_reason":"end_turn"}
}

// Some models number their calls from the start in every step, or give parallel calls one ID.
func TestEveryCallOfATurnAndItsResultAreInTheBatch(t *testing.T) {
	var b bridge.Think
	f := folder.NewFolder()
	add := func(events []folder.Event, err error) {
		require.NoError(t, err)
		for _, e := range events {
			require.NoError(t, f.Add(e))
		}
	}
	call := func(said string) string {
		return `{"type":"tool_use","id":"search:0","name":"search","input":{"q":"` + said + `"}}`
	}
	tool := func(said string) topics.ToolUseItem {
		return topics.ToolUseItem{ToolUseID: ptr("search:0"), Name: ptr("search"), Input: topics.Raw(`{"q":"` + said + `"}`)}
	}
	result := func(said string) topics.ToolUseResult {
		return topics.ToolUseResult{ToolUseID: ptr("search:0"), Result: topics.Raw(`"found ` + said + `"`), Status: ptr("success")}
	}
	add(b.Response(topics.ThinkResponse{
		LastInputResponse: topics.Raw(`[{"role":"assistant","content":[` + call("one") + `]}]`), ToolUses: []topics.ToolUseItem{tool("one")},
	}))
	add(b.Results(topics.ToolResults{Results: []topics.ToolUseResult{result("one")}}))
	add(b.Response(topics.ThinkResponse{
		LastInputResponse: topics.Raw(`[{"role":"assistant","content":[` + call("two") + "," + call("three") + `]}]`),
		ToolUses:          []topics.ToolUseItem{tool("two"), tool("three"), tool("four")}, // the last one is not in the message
	}))
	add(b.Results(topics.ToolResults{Results: []topics.ToolUseResult{result("two"), result("three"), result("four")}}))
	batch, err := f.Batch(folder.End{})
	require.NoError(t, err)
	all := string(batch.AppendEnvelope(nil))
	for i, said := range []string{"one", "two", "three", "four"} {
		id := []string{"search:0", "search:0-2", "search:0-3", "search:0-4"}[i]
		require.Equal(t, 1, strings.Count(all, `"`+said+`"`), all)
		require.Contains(t, all, `{"role":"tool","content":"found `+said+`","tool_call_id":"`+id+`"`)
	}
}
