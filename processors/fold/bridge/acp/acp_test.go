package acp_test

import (
	"fmt"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/fold/bridge/acp"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

func data(events []folder.Event) string {
	var lines []string
	for _, e := range events {
		lines = append(lines, string(e.Data()))
	}
	return strings.Join(lines, "\n")
}

func update(u string) topics.Raw { return topics.Raw(`{"sessionId":"s","update":` + u + `}`) }

func TestUpdatesBecomeEvents(t *testing.T) {
	const opened = `{"sessionUpdate":"tool_call","toolCallId":"t","title":"Run ls","kind":"execute","status":"pending"}`
	for name, c := range map[string]struct{ updates, want []string }{
		"text chunks are one message": {
			[]string{
				`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Hel"}}`,
				`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"lo \ud83d"}}`,
			},
			[]string{
				`{"type":"message_start","id":"msg-0"}`, `{"type":"message_delta","id":"msg-0","delta":"Hel"}`,
				`{"type":"message_delta","id":"msg-0","delta":"lo \ud83d"}`,
			},
		},
		"another message id is another message": {
			[]string{
				`{"sessionUpdate":"agent_message_chunk","messageId":"a","content":{"type":"text","text":"1"}}`,
				`{"sessionUpdate":"agent_message_chunk","messageId":"b","content":{"type":"text","text":"2"}}`,
			},
			[]string{
				`{"type":"message_start","id":"msg-0"}`, `{"type":"message_delta","id":"msg-0","delta":"1"}`,
				`{"type":"message_end","id":"msg-0"}`,
				`{"type":"message_start","id":"msg-1"}`, `{"type":"message_delta","id":"msg-1","delta":"2"}`,
			},
		},
		"thoughts": {
			[]string{
				`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}`,
				`{"sessionUpdate":"agent_thought_chunk","content":{"type":"image","data":"","mimeType":"image/png"}}`,
			},
			[]string{`{"type":"thought_start","id":"reason-0"}`, `{"type":"thought_delta","id":"reason-0","delta":"hm"}`},
		},
		"files": {
			[]string{
				`{"sessionUpdate":"agent_message_chunk","content":{"type":"image","data":"QQ==","mimeType":"image/png"}}`,
				`{"sessionUpdate":"agent_message_chunk","content":{"type":"resource_link","uri":"file:///a","name":"a"}}`,
				`{"sessionUpdate":"agent_message_chunk","content":{"type":"resource","resource":{"uri":"file:///b",` +
					`"text":"x","mimeType":"text/plain"}}}`,
			},
			[]string{
				`{"type":"file","url":"data:image/png;base64,QQ==","mediaType":"image/png"}`,
				`{"type":"file","url":"file:///a","mediaType":"application/octet-stream"}`,
				`{"type":"file","url":"file:///b","mediaType":"text/plain"}`,
			},
		},
		"a call, its arguments and its text": {
			[]string{
				opened,
				`{"sessionUpdate":"tool_call_update","toolCallId":"t","title":"Run ls -l","rawInput":{"n":9007199254740993}}`,
				`{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"in_progress","rawInput":{"n":9007199254740993}}`,
				`{"sessionUpdate":"tool_call_update","toolCallId":"t","content":[{"type":"content","content":{"type":"text",` +
					`"text":"a"}},` +
					`{"type":"content","content":{"type":"resource","resource":{"uri":"u","text":"b"}}},{"type":"terminal",` +
					`"terminalId":"x"}]}`,
				`{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"}`,
				`{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"}`,
			},
			[]string{
				`{"type":"tool_call","id":"t","name":"Run ls"}`,
				`{"type":"tool_call","id":"t","name":"Run ls","input":{"n":9007199254740993}}`,
				`{"type":"tool_result","id":"t","output":"a\nb\n{\"type\":\"terminal\",\"terminalId\":\"x\"}","isError":false}`,
			},
		},
		"an update of an unknown call announces it": {
			[]string{`{"sessionUpdate":"tool_call_update","toolCallId":"t","kind":"edit","status":"failed",` +
				`"rawOutput":{"code":1}}`},
			[]string{
				`{"type":"tool_call","id":"t","name":"edit"}`,
				`{"type":"tool_result","id":"t","output":"{\"code\":1}","data":{"code":1},"isError":true}`,
			},
		},
		"a call without a name or output": {
			[]string{`{"sessionUpdate":"tool_call","toolCallId":"t","status":"completed"}`, `{"sessionUpdate":"tool_call"}`},
			[]string{`{"type":"tool_call","id":"t","name":"tool"}`, `{"type":"tool_result","id":"t","output":"",` +
				`"isError":false}`},
		},
		"plans and the context": {
			[]string{
				`{"sessionUpdate":"plan","entries":[{"content":"x","priority":"low","status":"pending"}]}`,
				`{"sessionUpdate":"usage_update","used":5,"size":10}`,
			},
			[]string{
				`{"type":"data","name":"plan","data":[{"content":"x","priority":"low","status":"pending"}]}`,
				`{"type":"data","name":"context","data":{"used":5,"size":10}}`,
			},
		},
		"the rest is nothing": {
			[]string{
				`{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"hi"}}`,
				`{"sessionUpdate":"available_commands_update","availableCommands":[]}`,
				`{"sessionUpdate":"current_mode_update","currentModeId":"x"}`,
				`{"sessionUpdate":"of_tomorrow"}`, `{}`, `null`, `[]`, `{"sessionUpdate":5}`,
				`{"sessionUpdate":"agent_message_chunk"}`, `{"sessionUpdate":"agent_message_chunk",` +
					`"content":{"type":"hologram"}}`,
			},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var b acp.Bridge
			var all []folder.Event
			for _, u := range c.updates {
				events, err := b.Update(update(u))
				require.NoError(t, err)
				all = append(all, events...)
			}
			require.Equal(t, strings.Join(c.want, "\n"), data(all))
		})
	}
}

func TestAnswersEndTheTurn(t *testing.T) {
	var b acp.Bridge
	_, err := b.Notification(sdk.SessionNotification{SessionId: "s", Update: sdk.UpdateAgentMessageText("hi")})
	require.NoError(t, err)
	events, err := b.Answer(topics.Raw(`{"stopReason":"max_tokens","usage":{"inputTokens":1,"outputTokens":2,` +
		`"totalTokens":3}}`))
	require.NoError(t, err)
	require.Equal(t, `{"type":"message_end","id":"msg-0"}
{"type":"usage","input":1,"output":2,"total":3}
{"type":"done","stopReason":"max_tokens"}`, data(events))

	events, err = b.Response(sdk.PromptResponse{StopReason: sdk.StopReasonEndTurn})
	require.NoError(t, err)
	require.Equal(t, `{"type":"done","stopReason":"end_turn"}`, data(events))

	events, err = b.Fail("the agent is gone")
	require.NoError(t, err)
	require.Equal(t, "{\"type\":\"error\",\"message\":\"the agent is gone\"}\n{\"type\":\"done\"}", data(events))
}

func TestPermissionsAreRequests(t *testing.T) {
	var b acp.Bridge
	events, err := b.Permission("", topics.Raw(`{"sessionId":"s","toolCall":{"toolCallId":"t","title":"Run rm"},`+
		`"options":[{"optionId":"1","name":"Yes","kind":"allow_once"},{"optionId":"2","name":"No","kind":"reject_once"},`+
		`{"optionId":"3","name":"Never","kind":"reject_always"},{"optionId":"4","name":"?","kind":"new"}]}`))
	require.NoError(t, err)
	answered, err := b.Decision("t", "t", true)
	require.NoError(t, err)
	require.Equal(t, `{"type":"interaction_response","id":"t","kind":"user_approval",`+
		`"payload":{"approved":true,"toolCallId":"t"}}`, data(answered))

	batch, err := folder.Fold(append(events, folder.Done(topics.Raw(`"paused"`))))
	require.NoError(t, err)
	require.Equal(t, `{"type":"interaction_request","id":"t","kind":"user_approval","payload":{"toolCallId":"t",`+
		`"toolCall":{"toolCallId":"t","title":"Run rm"},"availableReplies":["once","reject"],`+
		`"options":[{"optionId":"1","name":"Yes","kind":"allow_once"},{"optionId":"2","name":"No","kind":"reject_once"},`+
		`{"optionId":"3","name":"Never","kind":"reject_always"},{"optionId":"4","name":"?","kind":"new"}]},`+
		`"tool":"Run rm"}`,
		string(batch.PendingInteraction))
	batch, err = folder.Fold(append(events, answered...))
	require.NoError(t, err)
	require.Empty(t, batch.Pending)
}

func TestInvalidJSONFails(t *testing.T) {
	var b acp.Bridge
	for _, call := range []func(topics.Raw) ([]folder.Event, error){
		b.Update, b.Answer,
		func(v topics.Raw) ([]folder.Event, error) { return b.Permission("", v) },
	} {
		_, err := call(topics.Raw(`{"update":`))
		require.ErrorIs(t, err, folder.ErrSyntax)
	}
}

func FuzzUpdate(f *testing.F) {
	f.Add([]byte(`{"update":{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"failed",` +
		`"content":[{"content":{}}]}}`))
	f.Add([]byte(`{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"image"}}}`))
	f.Fuzz(func(t *testing.T, params []byte) {
		var b acp.Bridge
		for range 2 {
			events, _ := b.Update(params)
			_, err := folder.Fold(events, folder.Strict())
			require.NoError(t, err)
		}
		_, _ = b.Permission("", params)
		_, _ = b.Answer(params)
	})
}

func ExampleBridge() {
	var b acp.Bridge
	f := folder.NewFolder()
	add := func(events []folder.Event, err error) {
		if err != nil {
			panic(err)
		}
		for _, e := range events {
			_ = f.Add(e)
		}
	}
	add(b.Update(topics.Raw(
		`{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Done."}}}`)))
	add(b.Answer(topics.Raw(`{"stopReason":"end_turn"}`)))
	batch, err := f.Batch(folder.End{})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", batch.AppendEnvelope(nil))
	// Output:
	// {"messages":[{"role":"assistant","content":"Done."}],"stop_reason":"end_turn"}
}

func TestCallWithTheIDOfAnEndedOneIsAnotherCall(t *testing.T) {
	var b acp.Bridge
	one := func(u string) string {
		events, err := b.Update(update(u))
		require.NoError(t, err)
		return data(events)
	}
	const call = `{"sessionUpdate":"tool_call","toolCallId":"t","title":"ls","rawInput":{"n":1},"status":"completed","rawOutput":"a"}`
	require.Contains(t, one(call), `{"type":"tool_result","id":"t","output":"a","isError":false}`)
	require.Empty(t, one(`{"sessionUpdate":"tool_call_update","toolCallId":"t","rawInput":{"n":2}}`), "an update of the ended call")
	require.Equal(t, `{"type":"tool_call","id":"t-2","name":"cat","input":{"n":3}}`,
		one(`{"sessionUpdate":"tool_call","toolCallId":"t","title":"cat","rawInput":{"n":3},"status":"pending"}`))
	events, err := b.Permission("p", topics.Raw(`{"toolCall":{"toolCallId":"t"},"options":[]}`))
	require.NoError(t, err)
	require.Contains(t, data(events), `"payload":{"toolCallId":"t-2"`)
	events, err = b.Decision("p", "t", true)
	require.NoError(t, err)
	require.Contains(t, data(events), `"toolCallId":"t-2"`)
	require.Equal(t, `{"type":"tool_result","id":"t-2","output":"","isError":false}`,
		one(`{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"}`), "without the output of the first one")
}
