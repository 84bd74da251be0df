package anthropic_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/think/anthropic"
	"github.com/turntable-streams/turntable/processors/turn/think/internal/providertest"
	"github.com/turntable-streams/turntable/topics"
)

const start = `message_start {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant",` +
	`"content":[],"model":"m","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":100,` +
	`"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}}`

const ping = `ping {"type":"ping"}`

// block returns the events of a content block. start is the block at its beginning.
func block(index int, start string, deltas ...string) []string {
	events := []string{fmt.Sprintf(`content_block_start {"type":"content_block_start","index":%d,"content_block":%s}`, index, start)}
	for _, d := range deltas {
		events = append(events, fmt.Sprintf(`content_block_delta {"type":"content_block_delta","index":%d,"delta":%s}`, index, d))
	}
	return append(events, fmt.Sprintf(`content_block_stop {"type":"content_block_stop","index":%d}`, index))
}

func text(index int, pieces ...string) []string {
	var deltas []string
	for _, p := range pieces {
		deltas = append(deltas, `{"type":"text_delta","text":`+strconv.Quote(p)+`}`)
	}
	return block(index, `{"type":"text","text":""}`, deltas...)
}

func call(index int, id, name string, pieces ...string) []string {
	var deltas []string
	for _, p := range pieces {
		deltas = append(deltas, `{"type":"input_json_delta","partial_json":`+strconv.Quote(p)+`}`)
	}
	return block(index, `{"type":"tool_use","id":"`+id+`","name":"`+name+`","input":{}}`, deltas...)
}

// said returns a response with these blocks.
func said(stop string, blocks ...[]string) providertest.Answer {
	events := []string{start, ping}
	for _, b := range blocks {
		events = append(events, b...)
	}
	return providertest.Events(append(events,
		`message_delta {"type":"message_delta","delta":{"stop_reason":"`+stop+`","stop_sequence":null},"usage":{"output_tokens":20}}`,
		`message_stop {"type":"message_stop"}`)...)
}

var kinds = map[int]string{
	400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error",
}

func failure(status int, headers ...string) providertest.Answer {
	kind := kinds[status]
	if kind == "" {
		kind = "api_error"
	}
	return providertest.JSON(status, `{"type":"error","error":{"type":"`+kind+`","message":"about Which berth?"}}`,
		append(headers, "request-id", "req_7")...)
}

var provider = providertest.Provider{
	Name: "anthropic", Idempotent: true,
	New:  func(s think.Settings) (providertest.Model, error) { return anthropic.New(s) },
	Text: func(pieces ...string) providertest.Answer { return said("end_turn", text(0, pieces...)) },
	Begun: func(pieces ...string) providertest.Answer {
		return providertest.Events(append([]string{start}, text(0, pieces...)...)...)
	},
	Error: failure,
	After: func() providertest.Answer { return failure(429, "retry-after", "7") },
	Overloaded: func() providertest.Answer {
		return providertest.Events(append(append([]string{start}, text(0, "N")...),
			`error {"type":"error","error":{"type":"overloaded_error","message":"about Which berth?"}}`)...)
	},
}

func TestModelBehavesAsEveryModel(t *testing.T) { provider.Run(t) }

func ask(t *testing.T, s think.Settings, step think.Step, a *providertest.API) (think.Reply, error) {
	t.Helper()
	return provider.NewModel(t, a, s).Think(t.Context(), step)
}

func TestRequestHasPromptToolsAndCacheBreakpoints(t *testing.T) {
	a := providertest.Start(t, said("end_turn", text(0, "N4.")))
	step := providertest.Question()
	step.Memoir, step.EphemeralPrompt = "Skipper.", "In one line."
	_, err := ask(t, think.Settings{System: "Be brief.", MaxTokens: 100, Tools: []think.Tool{providertest.Tool()}}, step, a)
	require.NoError(t, err)
	r := a.Requests()[0]
	require.Equal(t, "POST /v1/messages", r.Path)
	require.Equal(t, providertest.Key, r.Header.Get("X-Api-Key"))
	require.JSONEq(t, `{"model":"some-model","max_tokens":100,"stream":true,"cache_control":{"type":"ephemeral"},
		"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}},
			{"type":"text","text":"What you know of the user from earlier sessions:\nSkipper."},
			{"type":"text","text":"In one line."}],
		"messages":[{"role":"user","content":[{"type":"text","text":"Which berth?"}]}],
		"tools":[{"name":"berth_lookup","description":"Finds a berth.","input_schema":
			{"type":"object","properties":{"at":{"type":"string"}},"additionalProperties":false}}]}`, r.Body)
	require.Contains(t, r.Body, string(providertest.Tool().InputSchema), "byte for byte")
}

func TestLastToolEndsTheCachedPrefixWithoutASystemPrompt(t *testing.T) {
	a := providertest.Start(t, said("end_turn", text(0, "N4.")))
	_, err := ask(t, think.Settings{Tools: []think.Tool{providertest.Tool()}}, providertest.Question(), a)
	require.NoError(t, err)
	tools, _ := topics.Lookup(topics.Raw(a.Requests()[0].Body), "tools")
	require.Contains(t, string(tools), `"cache_control":{"type":"ephemeral"}`)
}

func TestEveryCallInThePromptHasItsResult(t *testing.T) {
	a := providertest.Start(t, said("end_turn", text(0, "N4.")))
	_, err := ask(t, think.Settings{}, providertest.Conversation(), a)
	require.NoError(t, err)
	messages, _ := topics.Lookup(topics.Raw(a.Requests()[0].Body), "messages")
	require.JSONEq(t, `[
		{"role":"user","content":[{"type":"text","text":"Result of an earlier call of a tool: {\"at\":\"17:00\"}"},
			{"type":"text","text":"Which berth?"},
			{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw=="}}]},
		{"role":"assistant","content":[{"type":"text","text":"Let me look."},
			{"type":"tool_use","id":"a","name":"berth_lookup","input":{"at":"18:00"}},
			{"type":"tool_use","id":"b","name":"clock","input":{}},{"type":"tool_use","id":"c","name":"tide","input":{}}]},
		{"role":"user","content":[
			{"type":"tool_result","tool_use_id":"a","is_error":false,"content":[{"type":"text","text":"{\"berth\":\"N4\"}"}]},
			{"type":"tool_result","tool_use_id":"b","is_error":true,
				"content":[{"type":"text","text":"No result of this call was recorded."}]},
			{"type":"tool_result","tool_use_id":"c","is_error":true,"content":[{"type":"text","text":"{\"error\":\"no tide\"}"}]},
			{"type":"text","text":"And now?"}]}]`, string(messages))
}

func TestParallelCallsAndUsage(t *testing.T) {
	a := providertest.Start(t, providertest.Events(append(append(append(append(
		[]string{`message_start {"type":"message_start","message":{"usage":{"input_tokens":100,` +
			`"cache_creation_input_tokens":1000,"cache_read_input_tokens":10000,"output_tokens":1}}}`},
		block(0, `{"type":"thinking","thinking":"","signature":""}`, `{"type":"thinking_delta","thinking":"hm"}`,
			`{"type":"signature_delta","signature":"x"}`)...),
		text(1, "Let me ", "look.")...), append(call(2, "toolu_1", "berth_lookup", "", `{"at": "18`, `:00"}`),
		call(3, "toolu_2", "clock")...)...),
		`message_delta {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":50}}`,
		`message_stop {"type":"message_stop"}`)...))
	m := provider.NewModel(t, a, think.Settings{Model: "claude-haiku-4-5"})
	reply, stop, err := think.Collect(m.Stream(t.Context(), providertest.Question()))
	require.NoError(t, err)
	require.Equal(t, "tool_use", stop)
	require.Equal(t, []think.Block{
		{Text: "Let me look."},
		{Call: &think.Call{ID: "toolu_1", Name: "berth_lookup", Input: topics.Raw(`{"at": "18:00"}`)}},
		{Call: &think.Call{ID: "toolu_2", Name: "clock", Input: topics.Raw(`{}`)}},
	}, reply.Blocks)
	require.Equal(t, []int64{11100, 50}, []int64{reply.InputTokens, reply.OutputTokens})
	require.InDelta(t, (100*1+1000*1.25+10000*0.1+50*5)/1e6, *reply.Cost, 1e-12)
}

func TestModelWithoutAPriceHasNoCost(t *testing.T) {
	a := providertest.Start(t, said("end_turn", text(0, "N4.")))
	reply, err := ask(t, think.Settings{}, providertest.Question(), a)
	require.NoError(t, err)
	require.Nil(t, reply.Cost)
	reply, err = ask(t, think.Settings{Prices: think.Prices{"some-model": {{Input: 1, Output: 5}}}}, providertest.Question(), a)
	require.NoError(t, err)
	require.InDelta(t, 0.0002, *reply.Cost, 1e-12)
}

func TestStopReasons(t *testing.T) {
	for name, c := range map[string]struct {
		answer providertest.Answer
		want   error
	}{
		"stop sequence":   {said("stop_sequence", text(0, "N")), nil},
		"text cut off":    {said("max_tokens", text(0, "Berth N")), nil},
		"context is full": {said("model_context_window_exceeded", text(0, "Berth N")), nil},
		"call cut off":    {said("max_tokens", call(0, "t", "n", `{"at`)), think.ErrTruncated},
		"nothing at all":  {said("max_tokens"), think.ErrTruncated},
		"refusal":         {said("refusal", text(0, "I")), think.ErrRefused},
		"pause":           {said("pause_turn"), think.ErrResponse},
		"new reason":      {said("because", text(0, "x")), nil},
		"no call":         {said("tool_use"), think.ErrResponse},
		"input no JSON":   {said("tool_use", call(0, "t", "n", `{"at`)), think.ErrResponse},
		"input no object": {said("tool_use", call(0, "t", "n", `[1]`)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ask(t, think.Settings{}, providertest.Question(), providertest.Start(t, c.answer))
			require.Equal(t, c.want, err)
		})
	}
}

func TestPricesAreComplete(t *testing.T) {
	for model := range anthropic.Prices() {
		require.Positive(t, *anthropic.Prices().Cost(model, think.Tokens{Input: 1, CacheRead: 1, CacheWrite: 1, Output: 1}), model)
	}
	long := think.Tokens{Input: 50_000, CacheRead: 60_000}
	require.InDelta(t, 0.5*0.05+0.05*0.06, *anthropic.Prices().Cost("claude-haiku-5-5", long), 1e-12)
}

func TestFailedCallReportsWhatItUsed(t *testing.T) {
	a := providertest.Start(t, said("refusal", text(0, "I")))
	reply, err := ask(t, think.Settings{Model: "claude-haiku-4-5"}, providertest.Question(), a)
	require.ErrorIs(t, err, think.ErrRefused)
	require.Equal(t, []int64{100, 20}, []int64{reply.InputTokens, reply.OutputTokens})
	require.Empty(t, reply.Blocks)
	begun := provider.Begun("N4.")
	begun.Hang = true
	reply, err = ask(t, think.Settings{Silence: 100 * time.Millisecond}, providertest.Question(), providertest.Start(t, begun))
	require.ErrorIs(t, err, think.ErrTimeout)
	require.Equal(t, int64(100), reply.InputTokens, "of the part that arrived")
}

func TestOverloadBeforeTheReplyIsUnavailable(t *testing.T) {
	a := providertest.Start(t, providertest.Events(start, `error {"type":"error","error":{"type":"overloaded_error"}}`))
	_, err := ask(t, think.Settings{}, providertest.Question(), a)
	var u *think.Unavailable
	require.ErrorAs(t, err, &u)
	require.Len(t, a.Requests(), 1)
}
