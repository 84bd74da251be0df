package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors/embedded"
)

func noon() time.Time { return time.Date(2026, 6, 20, 12, 0, 0, 0, time.UTC) }

func toolUseRecord(name, input string) *kgo.Record {
	return &kgo.Record{Key: []byte("s"), Value: encode(toolUse{
		ToolUseID: "call-1", ToolID: name, Name: name, Input: []byte(input), SessionID: "s", TotalTools: 2,
	})}
}

func TestToolReturnsTheResultOfItsCall(t *testing.T) {
	for input, want := range map[string]string{
		`calculator {"expression":"6 * 7"}`: `success {"value":42}`,
		`calculator {"expression":"1 / 0"}`: `error {"error":"division by zero","reason":"tool_failed"}`,
		`calculator {}`:                     `error {"error":"input has no expression","reason":"tool_failed"}`,
		`calculator null`:                   `error {"error":"input has no expression","reason":"tool_failed"}`,
		`clock {}`:                          `success {"time":"12:00:00","zone":"UTC"}`,
		`clock {"zone":"Nowhere/At_All"}`:   `error {"error":"unknown time zone \"Nowhere/At_All\"","reason":"tool_failed"}`,
		`clock {"zone":7}`:                  `error {"error":"zone is not a string","reason":"tool_failed"}`,
	} {
		name, in, _ := strings.Cut(input, " ")
		answers, err := tools("a", noon).answer(toolUseRecord(name, in))
		require.NoError(t, err, input)
		require.Len(t, answers, 1, input)
		require.Equal(t, "a-tool-use-result", answers[0].Topic)
		require.Equal(t, "s", string(answers[0].Key))
		got := field[toolResult](answers[0].Value)
		require.Equal(t, want, got.Status+" "+string(got.Result), input)
		require.Equal(t, "call-1", got.ToolUseID)
		require.Equal(t, 2, got.TotalTools)
	}
}

func TestToolIgnoresCallsOfTheDispatcher(t *testing.T) {
	answers, err := tools("a", noon).answer(toolUseRecord(delegateTask, `{"task":"x"}`))
	require.NoError(t, err)
	require.Empty(t, answers)

	answers, err = dispatch("a", "b", noon).answer(toolUseRecord(calculator, `{}`))
	require.NoError(t, err)
	require.Empty(t, answers)
}

func TestRecordsThatNoRoleCanAnswerReturnAnError(t *testing.T) {
	_, err := tools("a", noon).answer(toolUseRecord("telepathy", `{}`))
	require.ErrorContains(t, err, "telepathy")
	_, err = tools("a", noon).answer(&kgo.Record{Value: []byte("{")})
	require.Error(t, err)
	_, err = dispatch("a", "b", noon).answer(toolUseRecord(delegateTask, `{"task":" "}`))
	require.Error(t, err)
	_, err = think("a", work, noon).answer(&kgo.Record{Value: []byte(`{"latest_input":7}`)})
	require.Error(t, err)
	_, err = deliver("a", noon).answer(&kgo.Record{Value: []byte("no JSON")})
	require.Error(t, err)
}

func TestAnswerToADelegatedTaskIsAToolResult(t *testing.T) {
	task, err := dispatch("a", "b", noon).answer(toolUseRecord(delegateTask, `{"task":"Dig."}`))
	require.NoError(t, err)
	require.Len(t, task, 2)
	require.Equal(t, "b-reply-to", task[0].Topic)
	require.Equal(t, "b-message-input", task[1].Topic)
	for _, r := range task {
		require.Equal(t, "s--call-1", string(r.Key))
	}
	m := field[message](task[1].Value)
	require.Equal(t, "Dig.", contentText(m.Content))
	require.Equal(t, "call-1", field[metadata](m.Metadata).RequestID)
	require.Equal(t, "call-1", field[route](task[0].Value).RequestID)

	for out, want := range map[string]string{
		`{"content":"Dug.","reply_to":` + string(task[0].Value) + `}`:                                                            `success {"answer":"Dug."}`,
		`{"content":"no","status":"error","error":{"code":"cancelled","message":"no"},"reply_to":` + string(task[0].Value) + `}`: `error {"error":"no","reason":"cancelled"}`,
	} {
		results, err := deliver("b", noon).answer(&kgo.Record{Key: []byte("s--call-1"), Value: []byte(out), Timestamp: noon()})
		require.NoError(t, err)
		require.Len(t, results, 1)
		require.Equal(t, "a-tool-use-result", results[0].Topic)
		require.Equal(t, "s", string(results[0].Key))
		got := field[toolResult](results[0].Value)
		require.Equal(t, want, got.Status+" "+string(got.Result))
		require.Equal(t, "call-1", got.ToolUseID)
		require.Equal(t, delegateTask, got.Name)
	}
}

func TestOutputWithoutRouteGivesNoToolResult(t *testing.T) {
	for _, out := range []string{`{"content":"x"}`, `{"content":"x","reply_to":{"callbackService":"web"}}`} {
		results, err := deliver("b", noon).answer(&kgo.Record{Value: []byte(out)})
		require.NoError(t, err)
		require.Empty(t, results)
	}
}

func TestModelPassesTheConversationOn(t *testing.T) {
	in := `{"session_id":"s","user_id":"u","cost":1.5,"history":[{"role":"user","content":"old","x":1.10}],` +
		`"latest_input":{"role":"user","content":"1 + 1","timestamp":"t"},"memoir_context":null,"timestamp":"t"}`
	answers, err := think("a", orchestrate, noon).answer(&kgo.Record{Key: []byte("s"), Value: []byte(in)})
	require.NoError(t, err)
	require.Equal(t, "a-think-request-response", answers[0].Topic)
	out := field[thinkResponse](answers[0].Value)
	require.Equal(t, `{"role":"user","content":"old","x":1.10}`, string(out.PreviousMessages[0]))
	require.Equal(t, `{"role":"user","content":"1 + 1","timestamp":"t"}`, string(out.LastInputMessage))
	require.False(t, out.EndTurn)
	require.Len(t, out.ToolUses, 1)
	require.Equal(t, calculator, out.ToolUses[0].Name)
	require.Equal(t, out.ToolUses[0].ToolUseID, blocks(out.LastInputResponse[0])[1].ID)
	require.Greater(t, out.TotalSessionCost, 1.5)

	again, err := think("a", orchestrate, noon).answer(&kgo.Record{Key: []byte("s"), Value: []byte(in)})
	require.NoError(t, err)
	require.Equal(t, answers, again, "an input that is read again has the same response")

	final, err := think("a", work, noon).answer(&kgo.Record{Key: []byte("s"), Value: []byte(in)})
	require.NoError(t, err)
	require.Contains(t, string(final[0].Value), `"tool_uses":null,"end_turn":true`)
}

func TestRoleDeadLettersAndContinues(t *testing.T) {
	broker, err := embedded.Start(embedded.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, broker.Close()) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...),
		kgo.ConsumeTopics("a-tool-use-result", "a-tool-use-dlq"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	defer client.Close()
	_, err = kadm.NewClient(client).CreateTopics(ctx, 1, 1, nil, "a-tool-use", "a-tool-use-result", "a-tool-use-dlq")
	require.NoError(t, err)

	done, ready := make(chan error, 1), make(chan struct{})
	serving, stop := context.WithCancel(ctx)
	go func() {
		done <- tools("a", noon).run(serving, broker.Addrs(), "test", func() { close(ready) }, zap.NewNop())
	}()
	<-ready
	for _, r := range []*kgo.Record{toolUseRecord("telepathy", `{}`), toolUseRecord(calculator, `{"expression":"6 * 7"}`)} {
		r.Topic = "a-tool-use"
		require.NoError(t, client.ProduceSync(ctx, r).FirstErr())
	}
	got := make(map[string]*kgo.Record)
	for len(got) < 2 {
		fetches := client.PollFetches(ctx)
		require.NoError(t, ctx.Err())
		fetches.EachRecord(func(r *kgo.Record) { got[r.Topic] = r })
	}
	require.Equal(t, `unknown tool "telepathy"`, reason(got["a-tool-use-dlq"]))
	require.JSONEq(t, string(toolUseRecord("telepathy", `{}`).Value), string(got["a-tool-use-dlq"].Value))
	require.Equal(t, `{"value":42}`, string(field[toolResult](got["a-tool-use-result"].Value).Result))
	stop()
	require.NoError(t, <-done)
}

func TestEveryRecordIsPrintedOnOneLine(t *testing.T) {
	for suffix, want := range map[string][2]string{
		messageInput:    {`{"role":"user","content":"Hi\nthere"}`, "user: Hi there"},
		enrichedInput:   {`{"history":[{},{}],"latest_input":{"role":"tool"}}`, "tool input, 2 messages of history"},
		thinkResponses:  {`{"tool_uses":[{"name":"clock"},{"name":"x"}]}`, "asks for clock, x"},
		toolUses:        {`{"name":"clock","input":{}}`, "clock {}"},
		toolUseResults:  {`{"name":"clock","status":"success","result":{"a":1}}`, `clock success {"a":1}`},
		toolUseComplete: {`{"results":[{},{}]}`, "all 2 results are there"},
		messageOutput:   {`{"error":{"code":"busy","message":"later"}}`, "error busy: later"},
		replyTo:         {`{"callbackService":"a","request_id":"r"}`, "answer to a as r"},
		thinkDLQ:        {`[]`, "2 bytes"},
		toolUseDLQ:      {`[]`, "unreadable, 2 bytes"},
	} {
		r := &kgo.Record{Topic: topicOf("a", suffix), Value: []byte(want[0])}
		require.Equal(t, want[1], summarize("a", r), suffix)
	}
	require.Equal(t, "(removed)", summarize("a", &kgo.Record{Topic: "a-reply-to"}))
}
