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

func translate(t *testing.T, b *bridge.Anthropic, stream ...string) string {
	t.Helper()
	var lines []string
	for _, raw := range stream {
		events, err := b.Event(topics.Raw(raw))
		require.NoError(t, err)
		for _, e := range events {
			lines = append(lines, string(e.Data()))
		}
	}
	return strings.Join(lines, "\n")
}

func TestTextAndThinkingStream(t *testing.T) {
	var b bridge.Anthropic
	require.Equal(t, `{"type":"thought_start","id":"reason-0"}
{"type":"thought_delta","id":"reason-0","delta":"hm"}
{"type":"thought_end","id":"reason-0"}
{"type":"message_start","id":"msg-1"}
{"type":"message_delta","id":"msg-1","delta":"Hi \ud83d"}
{"type":"message_delta","id":"msg-1","delta":"\ude42"}
{"type":"message_end","id":"msg-1"}
{"type":"usage","input":17,"output":9,"total":26}
{"type":"done","stopReason":"end_turn"}`, translate(
		t, &b,
		`{"type":"message_start","message":{"id":"m","role":"assistant","content":[],"usage":{"input_tokens":10,`+
			`"cache_read_input_tokens":7,"output_tokens":1}}}`,
		`{"type":"ping"}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"x"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hi \ud83d"}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"\ude42"}}`,
		`{"type":"content_block_stop","index":1}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"input_tokens":10,`+
			`"cache_read_input_tokens":null,"output_tokens":9}}`,
		`{"type":"message_stop"}`,
	))
}

func TestToolsSpanMessages(t *testing.T) {
	var b bridge.Anthropic
	require.Equal(t, `{"type":"tool_call","id":"tu","name":"search","input":{}}
{"type":"tool_call","id":"tu","name":"search","input":{"q": "a\nb", "n": 9007199254740993}}
{"type":"usage","input":1,"output":2,"total":3}`, translate(
		t, &b,
		`{"type":"message_start","message":{"usage":{"input_tokens":1,"output_tokens":0}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"tu","name":"search","input":{}}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"q\": \"a\\n"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta",`+
			`"partial_json":"b\", \"n\": 9007199254740993}"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":2}}`,
		`{"type":"message_stop"}`,
	))
	events, err := b.ToolResult("tu", topics.Raw(`"Paris"`), false)
	require.NoError(t, err)
	require.Len(t, events, 1)
	require.Equal(t, `{"type":"message_start","id":"msg-0"}
{"type":"message_delta","id":"msg-0","delta":"Paris."}
{"type":"message_end","id":"msg-0"}
{"type":"usage","input":6,"output":5,"total":11}
{"type":"done","stopReason":"max_tokens"}`, translate(
		t, &b,
		`{"type":"message_start","message":{"usage":{"input_tokens":5}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Paris."}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":3}}`,
		`{"type":"message_stop"}`,
	))
}

func TestServerToolsAndCutInputs(t *testing.T) {
	var b bridge.Anthropic
	require.Equal(t, `{"type":"tool_call","id":"s","name":"web_search","input":{}}
{"type":"tool_result","id":"s","output":"{\"type\":\"web_search_tool_result_error\"}","data":{"type":"web_search_tool_result_error"},"isError":true}`,
		translate(
			t, &b,
			`{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s",`+
				`"name":"web_search","input":{}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"ca"}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"web_search_tool_result","tool_use_id":"s",`+
				`"content":{"type":"web_search_tool_result_error"}}}`,
			`{"type":"content_block_stop","index":1}`,
		))
}

func TestErrorsEndTheTurn(t *testing.T) {
	var b bridge.Anthropic
	require.Equal(t, `{"type":"message_start","id":"msg-0"}
{"type":"message_delta","id":"msg-0","delta":"par"}
{"type":"message_end","id":"msg-0"}
{"type":"error","message":"Overloaded"}
{"type":"done"}`, translate(
		t, &b,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"par"}}`,
		`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`,
	))
}

func TestUnknownKindsAreIgnored(t *testing.T) {
	var b bridge.Anthropic
	require.Empty(t, translate(
		t, &b, `{"type":"of_tomorrow"}`, `{}`, `null`, `5`, `{"type":["x"]}`,
		`{"type":"content_block_start"}`, `{"type":"content_block_start","index":7,"content_block":{"type":"tool_use"}}`,
		`{"type":"content_block_delta","index":9,"delta":{"type":"input_json_delta","partial_json":"{}"}}`,
		`{"type":"content_block_delta","index":9,"delta":{"type":"of_tomorrow"}}`,
		`{"type":"content_block_stop","index":9}`, `{"type":"message_delta","usage":{"output_tokens":-1}}`,
	))
	_, err := b.Event(topics.Raw(`{"type":`))
	require.ErrorIs(t, err, folder.ErrSyntax)
	_, err = b.ToolResult("x", topics.Raw(`text`), false)
	require.ErrorIs(t, err, folder.ErrSyntax)
}

func FuzzAnthropicEvent(f *testing.F) {
	f.Add([]byte(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t",` +
		`"input":{"a":1}}}`))
	f.Add([]byte(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"x"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var b bridge.Anthropic
		for range 2 {
			events, _ := b.Event(data)
			_, err := folder.Fold(events, folder.Strict())
			require.NoError(t, err)
		}
	})
}

func ExampleAnthropic() {
	var b bridge.Anthropic
	f := folder.NewFolder()
	for _, data := range []string{
		`{"type":"message_start","message":{"usage":{"input_tokens":12}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Paris"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}`,
		`{"type":"message_stop"}`,
	} {
		events, err := b.Event(topics.Raw(data))
		if err != nil {
			panic(err)
		}
		for _, e := range events {
			_ = f.Add(e)
		}
	}
	batch, err := f.Batch(folder.End{})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s %s\n", batch.AppendEnvelope(nil), batch.Usage)
	// Output:
	// {"messages":[{"role":"assistant","content":"Paris"}],"stop_reason":"end_turn"} {"input":12,"output":3,"total":15}
}

func TestCallsOfLaterMessagesWithAKnownIDAreKept(t *testing.T) {
	var b bridge.Anthropic
	message := func(inputs ...string) (lines string) {
		all := []string{`{"type":"message_start","message":{}}`}
		for i, input := range inputs {
			index := fmt.Sprintf(`"index":%d`, i)
			all = append(all, `{"type":"content_block_start",`+index+`,"content_block":{"type":"tool_use","id":"tu","name":"n","input":{}}}`,
				`{"type":"content_block_delta",`+index+`,"delta":{"type":"input_json_delta","partial_json":"`+input+`"}}`,
				`{"type":"content_block_stop",`+index+`}`)
		}
		return translate(t, &b, all...)
	}
	require.Contains(t, message("1"), `{"type":"tool_call","id":"tu","name":"n","input":1}`)
	events, err := b.ToolResult("tu", topics.Raw(`"one"`), false)
	require.NoError(t, err)
	require.Contains(t, string(events[0].Data()), `"id":"tu","output":"one"`)
	said := message("2", "3")
	require.Contains(t, said, `{"type":"tool_call","id":"tu-2","name":"n","input":2}`)
	require.Contains(t, said, `{"type":"tool_call","id":"tu-3","name":"n","input":3}`)
	for _, id := range []string{"tu-2", "tu-3"} {
		events, err = b.ToolResult("tu", topics.Raw(`"x"`), false)
		require.NoError(t, err)
		require.Contains(t, string(events[0].Data()), `"id":"`+id+`","output":"x"`)
	}
}
