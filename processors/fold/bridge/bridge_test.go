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

// data returns the JSON of a translation's events, one a line.
func data(t *testing.T) func([]folder.Event, error) string {
	return func(events []folder.Event, err error) string {
		t.Helper()
		require.NoError(t, err)
		var lines []string
		for _, e := range events {
			lines = append(lines, string(e.Data()))
		}
		return strings.Join(lines, "\n")
	}
}

func TestBlocksNeverOverlap(t *testing.T) {
	var turn bridge.Turn
	turn.Thought(topics.Raw(`"hm"`))
	turn.Text(topics.Raw(`"a"`))
	turn.Text(topics.Raw(`""`))
	turn.Text(nil)
	turn.Text(topics.Raw(`5`))
	turn.Text(topics.Raw(`"b\ud83d"`))
	turn.Call("t", topics.Raw(`"n"`), topics.Raw(`{}`))
	turn.Text(topics.Raw(`"c"`))
	turn.Done("")
	require.Equal(t, strings.Join([]string{
		`{"type":"thought_start","id":"reason-0"}`,
		`{"type":"thought_delta","id":"reason-0","delta":"hm"}`,
		`{"type":"thought_end","id":"reason-0"}`,
		`{"type":"message_start","id":"msg-1"}`,
		`{"type":"message_delta","id":"msg-1","delta":"a"}`,
		`{"type":"message_delta","id":"msg-1","delta":"b\ud83d"}`,
		`{"type":"message_end","id":"msg-1"}`,
		`{"type":"tool_call","id":"t","name":"n","input":{}}`,
		`{"type":"message_start","id":"msg-2"}`,
		`{"type":"message_delta","id":"msg-2","delta":"c"}`,
		`{"type":"message_end","id":"msg-2"}`,
		`{"type":"done"}`,
	}, "\n"), data(t)(turn.Take()))
}

func TestCallIsUpdatedUntilItsResult(t *testing.T) {
	var turn bridge.Turn
	turn.Call("t", topics.Raw(`"first"`), nil)
	for _, input := range []string{``, `null`, `{ }`, `{"a":1}`, `{"a":1}`, `{}`} {
		turn.Call("t", topics.Raw(`"later"`), topics.Raw(input))
	}
	turn.Result("t", topics.Raw(`{"rows":1.0}`), true)
	turn.Result("t", topics.Raw(`"again"`), false)
	turn.Call("t", topics.Raw(`"late"`), topics.Raw(`{"a":2}`))
	turn.Result("orphan", nil, false)
	require.Equal(t, strings.Join([]string{
		`{"type":"tool_call","id":"t","name":"first"}`,
		`{"type":"tool_call","id":"t","name":"first","input":{"a":1}}`,
		`{"type":"tool_result","id":"t","output":"{\"rows\":1.0}","data":{"rows":1.0},"isError":true}`,
		`{"type":"tool_result","id":"orphan","isError":false}`,
	}, "\n"), data(t)(turn.Take()))
}

func TestLaterCallWithAKnownIDHasAnIDOfItsOwn(t *testing.T) {
	var turn bridge.Turn
	first, second := turn.Begin("t", nil, topics.Raw(`1`)), turn.Begin("t", nil, topics.Raw(`2`))
	turn.Begin("t-2", nil, nil)
	turn.Update(first, topics.Raw(`3`))
	turn.Update(second, topics.Raw(`4`))
	require.Equal(t, "t-2", turn.EventID("t"))
	require.Equal(t, "t-2-2", turn.EventID("t-2"))
	turn.Result("t", topics.Raw(`"a"`), false)
	turn.Result("t", topics.Raw(`"b"`), false)
	turn.Result("t", topics.Raw(`"c"`), false)
	turn.Result("t-2", topics.Raw(`"d"`), false)
	require.Equal(t, strings.Join([]string{
		`{"type":"tool_call","id":"t","input":1}`, `{"type":"tool_call","id":"t-2","input":2}`, `{"type":"tool_call","id":"t-2-2"}`,
		`{"type":"tool_call","id":"t","input":3}`, `{"type":"tool_call","id":"t-2","input":4}`,
		`{"type":"tool_result","id":"t","output":"a","isError":false}`, `{"type":"tool_result","id":"t-2","output":"b","isError":false}`,
		`{"type":"tool_result","id":"t-2-2","output":"d","isError":false}`,
	}, "\n"), data(t)(turn.Take()))
}

func TestTooDeepEventFails(t *testing.T) {
	var turn bridge.Turn
	turn.Call("t", nil, topics.Raw(strings.Repeat("[", folder.MaxDepth)+strings.Repeat("]", folder.MaxDepth)))
	turn.Done("end_turn")
	events, err := turn.Take()
	require.ErrorIs(t, err, folder.ErrDepth)
	require.Len(t, events, 1)
}

func TestReadersAcceptAnyValue(t *testing.T) {
	for _, v := range []string{``, `null`, `5`, `[]`, `{}`, `[null,1]`, `"x"`} {
		value := topics.Raw(v)
		require.Nil(t, bridge.Get(value, "a", "b"))
		require.Equal(t, v == `"x"`, bridge.String(value) == "x")
		require.Equal(t, v == `[null,1]`, len(bridge.Elements(value)) == 1)
	}
}

func ExampleTurn() {
	var turn bridge.Turn
	turn.Text(bridge.Text("Let me look."))
	turn.Call("t1", bridge.Text("search"), topics.Raw(`{"q":"France"}`))
	turn.Result("t1", bridge.Text("Paris"), false)
	turn.Done("end_turn")
	events, err := turn.Take()
	if err != nil {
		panic(err)
	}
	batch, err := folder.Fold(events)
	if err != nil {
		panic(err)
	}
	fmt.Println(len(events), "events,", len(batch.Messages), "messages, then", batch.StopReason)
	// Output:
	// 6 events, 3 messages, then "end_turn"
}

func ExampleFields() {
	fmt.Println(bridge.Fields{}.Text("id", "a").Value("n", topics.Raw("1.0")).Flag("ok", true).Object())
	// Output:
	// {"id":"a","n":1.0,"ok":true}
}

func ExampleGet() {
	update := topics.Raw(`{"content":{"type":"text","text":"hi"},"list":[null,1]}`)
	fmt.Println(bridge.String(bridge.Get(update, "content", "text")), bridge.Elements(bridge.Get(update, "list")))
	// Output:
	// hi [1]
}
