package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

func TestEveryRecordIsPrintedOnOneLine(t *testing.T) {
	a, err := topics.For("a", topics.WithGates(), topics.WithMemoir())
	require.NoError(t, err)
	b, err := topics.For("b", topics.WithDeliveries())
	require.NoError(t, err)
	shown := map[string]shown{}
	for _, s := range flow(a, b) {
		shown[s.Name] = s
	}
	require.NotContains(t, shown, "b-gate-requests", "it does not exist")
	for topic, want := range map[string][2]string{
		"a-message-input":              {`{"role":"user","content":"Hi\nthere"}`, "user: Hi\nthere"},
		"a-enriched-message-input":     {`{"history":[{},{}],"latest_input":{"role":"tool"}}`, "tool input, 2 messages of history"},
		"a-memoir-lookups":             {`{"history":[],"latest_input":{"role":"user"}}`, "user input, to get the memory"},
		"a-think-request-response":     {`{"tool_uses":[{"name":"clock"},{"name":"x"}]}`, "asks for clock, x"},
		"b-tool-use":                   {`{"name":"clock","input":{}}`, "clock {}"},
		"b-tool-use-result":            {`{"name":"clock","status":"success","result":{"a":1}}`, `clock success {"a":1}`},
		"a-tool-use-all-complete":      {`{"results":[{},{}]}`, "all 2 results are there"},
		"a-message-output":             {`{"error":{"code":"busy","message":"later"}}`, "error busy: later"},
		"b-reply-to":                   {`{"callbackService":"a","request_id":"r"}`, "the answer is for a"},
		"b-deliveries":                 {`[]`, "unreadable, 2 bytes"},
		"a-memoir-context":             {"my boat", "my boat"},
		"a-memoir-context-session-end": {`{"memoir_context":"x","think_response":{"previous_messages":[{}]}}`, `1 messages, memory "x"`},
	} {
		require.Contains(t, shown, topic)
		require.Equal(t, want[1], shown[topic].say(processors.Inbound{Value: []byte(want[0])}), topic)
	}
	require.Equal(t, "(removed)", shown["b-reply-to"].say(processors.Inbound{}))
	require.Equal(t, "dead-lettered: why", shown["a-think-dlq"].say(processors.Inbound{
		Headers: []processors.Header{{Name: topics.HeaderErrorReason, Value: []byte("why")}},
	}))

	out := new(buffer)
	newScreen(out).record(shown["a-message-input"], processors.Inbound{
		Key: []byte("a session with a long name"), Value: []byte(`{"role":"user","content":"Hi\nthere"}`),
	})
	require.Regexp(t, `^\d\d:\d\d:\d\d\.\d{3}  a-message-input +a session with a lon… user: Hi there\n$`, out)
}

func TestPrintedTextIsOneLine(t *testing.T) {
	require.Equal(t, "a b[0m", oneLine("a\nb\x1b[0m", noLimit))
}
