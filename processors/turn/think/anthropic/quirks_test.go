package anthropic_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/think/anthropic"
	read "github.com/turntable-streams/turntable/processors/turn/think/internal/provider"
	"github.com/turntable-streams/turntable/processors/turn/think/internal/providertest"
	"github.com/turntable-streams/turntable/topics"
)

func input(piece string) string { return `{"type":"input_json_delta","partial_json":` + piece + `}` }

func TestInputsAreReadAsServersSendThem(t *testing.T) {
	start := func(input string) string {
		return `{"type":"tool_use","id":"t","name":"look"` + input + `}`
	}
	for name, c := range map[string]struct {
		events []string
		want   string
	}{
		"whole at the start":             {block(0, start(`,"input":{"at": "18:00"}`)), `{"at": "18:00"}`},
		"whole at the start, empty rest": {block(0, start(`,"input":{"n":1}`), input(`""`), input(`" "`)), `{"n":1}`},
		"whole at the start and later":   {block(0, start(`,"input":{"n":1}`), input(`"{\"n\":1}"`)), `{"n":1}`},
		"text at the start":              {block(0, start(`,"input":"{\"n\":1}"`)), `{"n":1}`},
		"null at the start":              {block(0, start(`,"input":null`)), `{}`},
		"nothing at the start":           {block(0, start(``), input(`"{\"n\":"`), input(`"1}"`)), `{"n":1}`},
		"pieces that are objects":        {block(0, start(``), input(`{"n":1}`)), `{"n":1}`},
		"encoded twice":                  {block(0, start(``), input(`"\"{\\\"n\\\":1}\""`)), `{"n":1}`},
		"null text":                      {block(0, start(``), input(`"null"`)), `{}`},
		"half of a pair":                 {block(0, start(``), input(`"{\"a\":\"\ud83d"`), input(`"\ude42\"}"`)), `{"a":"🙂"}`},
		"block that does not end":        {block(0, start(`,"input":{"n":1}`))[:1], `{"n":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			reply, err := ask(t, think.Settings{}, providertest.Question(), providertest.Start(t, said("tool_use", c.events)))
			require.NoError(t, err)
			require.Equal(t, []think.Call{{ID: "t", Name: "look", Input: topics.Raw(c.want)}}, reply.Calls())
		})
	}
}

func TestBlocksThatAreOpenAtTheSameTime(t *testing.T) {
	a := providertest.Start(t, providertest.Events(start,
		`content_block_start {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","name":"clock"}}`,
		`content_block_start {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"a","name":"tide","input":{}}}`,
		`content_block_delta {"type":"content_block_delta","index":1,"delta":`+input(`"{\"n\":"`)+`}`,
		`content_block_delta {"type":"content_block_delta","index":2,"delta":`+input(`"{\"n\":2}"`)+`}`,
		`content_block_delta {"type":"content_block_delta","index":1,"delta":`+input(`"1}"`)+`}`,
		`content_block_stop {"type":"content_block_stop","index":1}`, `content_block_stop {"type":"content_block_stop","index":2}`,
		`message_delta {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":5}}`,
		`message_stop {"type":"message_stop"}`))
	reply, err := ask(t, think.Settings{}, providertest.Question(), a)
	require.NoError(t, err)
	require.Equal(t, []think.Call{
		{ID: "a", Name: "clock", Input: topics.Raw(`{"n":1}`)}, {ID: "a-2", Name: "tide", Input: topics.Raw(`{"n":2}`)},
	}, reply.Calls(), "parallel calls with one ID are two calls")
}

func TestWhatIsGoodOfAReplyStays(t *testing.T) {
	for _, bad := range []string{`"{}\"\""`, `"at noon"`, `"{\"at"`, `"[1]"`} {
		reply, err := ask(t, think.Settings{}, providertest.Question(), providertest.Start(t, said("tool_use", text(0, "Let me look."),
			call(1, "a", "clock", `{"n":1}`), block(2, `{"type":"tool_use","id":"b","name":"tide","input":{}}`, input(bad)))))
		require.NoError(t, err, bad)
		require.Len(t, reply.Blocks, 3)
		require.Empty(t, reply.Calls()[0].Invalid)
		require.Contains(t, reply.Calls()[1].Invalid, "not a JSON object")
		require.Equal(t, "{}", string(reply.Calls()[1].Input))
	}
	for _, reason := range []string{"end_turn", "", "eos", "because"} {
		reply, err := ask(t, think.Settings{}, providertest.Question(), providertest.Start(t, said(reason, text(0, "N4."))))
		require.NoError(t, err, reason)
		require.Equal(t, []think.Block{{Text: "N4."}}, reply.Blocks)
	}
	pieces := block(0, `{"type":"text","text":"a\ud83d"}`, `{"type":"text_delta","text":"\ude42 \ud83d"}`, `{"type":"text_delta","text":"b"}`)
	reply, err := ask(t, think.Settings{}, providertest.Question(), providertest.Start(t, said("end_turn", pieces)))
	require.NoError(t, err)
	require.Equal(t, []think.Block{{Text: "a🙂 \uFFFDb"}}, reply.Blocks)
}

func TestEmptyReplyIsAnError(t *testing.T) {
	for name, answer := range map[string]providertest.Answer{
		"no block": said("end_turn"), "empty block": said("end_turn", text(0)), "blank": said("end_turn", text(0, " \n")),
		"thinking only": said("end_turn", block(0, `{"type":"thinking","thinking":"hm","signature":"x"}`)),
	} {
		reply, err := ask(t, think.Settings{}, providertest.Question(), providertest.Start(t, answer))
		require.Equal(t, think.ErrEmpty, err, name)
		require.Equal(t, int64(100), reply.InputTokens)
	}
}

func TestErrorsInAStreamAreReadLikeStatuses(t *testing.T) {
	for failure, want := range map[string]int{
		`{"type":"overloaded_error"}`: 529, `{"type":"rate_limit_error"}`: 429, `{"type":"invalid_request_error"}`: 400,
		`{"type":"authentication_error"}`: 401, `{"type":"permission_error"}`: 403, `{"type":"not_found_error"}`: 404,
		`{"type":"api_error"}`: 500, `{"type":"timeout_error"}`: 504, `{"code":400}`: 400, `{"code":"429"}`: 429, `{"code":503}`: 503,
	} {
		_, err := ask(t, think.Settings{}, providertest.Question(), providertest.Start(t,
			providertest.Events(start, `error {"type":"error","error":`+failure+`}`)))
		var failed *think.ProviderError
		require.ErrorAs(t, err, &failed, failure)
		require.Equal(t, want, failed.Status)
		var u *think.Unavailable
		require.Equal(t, want == http.StatusTooManyRequests || want >= 500, errors.As(err, &u))
	}
	answer := providertest.Events(start, `error {"type":"error","error":{"type":"rate_limit_error"}}`)
	answer.Headers["Retry-After"] = "7"
	_, err := ask(t, think.Settings{}, providertest.Question(), providertest.Start(t, answer))
	var u *think.Unavailable
	require.ErrorAs(t, err, &u)
	require.Equal(t, 7*time.Second, u.After)
}

func TestHistoryOfOtherProvidersIsAccepted(t *testing.T) {
	provider.RequireAccepted(t, think.Settings{}, read.AnyName, read.AnyName, func(body topics.Raw) (s providertest.Sent) {
		all, _ := topics.Elements(read.Get(body, "tools"))
		for _, tool := range all {
			s.Tools = append(s.Tools, read.String(tool, "name"))
		}
		messages, _ := topics.Elements(read.Get(body, "messages"))
		for _, m := range messages {
			blocks, _ := topics.Elements(read.Get(m, "content"))
			for _, b := range blocks {
				switch read.String(b, "type") {
				case "tool_use":
					s.Names = append(s.Names, read.String(b, "name"))
					s.Calls = append(s.Calls, read.String(b, "id"))
				case "tool_result":
					s.Results = append(s.Results, read.String(b, "tool_use_id"))
				}
			}
		}
		return s
	})
}

// The content of such messages is in the API's format: nothing else in it changes.
func TestBlocksOfTheAPIKeepTheirOtherMembers(t *testing.T) {
	a := providertest.Start(t, said("end_turn", text(0, "N4.")))
	_, err := ask(t, think.Settings{}, providertest.Step(
		providertest.Message("assistant", `[{"cache_control":{"type":"ephemeral"},"type":"tool_use","name":"a.b","id":"x:0","input":{"n":1}}]`),
		providertest.Message("user", `[{"type":"tool_result","tool_use_id":"x:0","content":[{"type":"text","text":"\ud83d"}]}]`)), a)
	require.NoError(t, err)
	messages, _ := topics.Elements(read.Get(topics.Raw(a.Requests()[0].Body), "messages"))
	blocks, _ := topics.Elements(read.Get(messages[0], "content"))
	id, name := read.String(blocks[0], "id"), read.String(blocks[0], "name")
	require.JSONEq(t, `{"cache_control":{"type":"ephemeral"},"type":"tool_use","name":"`+name+`","id":"`+id+`","input":{"n":1}}`, string(blocks[0]))
	blocks, _ = topics.Elements(read.Get(messages[1], "content"))
	require.JSONEq(t, `{"type":"tool_result","tool_use_id":"`+id+`","content":[{"type":"text","text":"\ufffd"}]}`, string(blocks[0]))
}

// The model hears of every call that it made, also if a worker gave two of them one ID.
func TestResultsOfCallsWithOneIDAreSent(t *testing.T) {
	a := providertest.Start(t, said("end_turn", text(0, "N4.")))
	_, err := ask(t, think.Settings{}, providertest.Step(
		providertest.Message("assistant", `[{"type":"tool_use","id":"c","name":"n","input":{"at":1}},{"type":"tool_use","id":"c","name":"n","input":{"at":2}}]`),
		providertest.Message("tool", `[{"tool_use_id":"c","name":"n","result":{"said":"one"},"status":"success"},`+
			`{"tool_use_id":"c","name":"n","result":{"reason":"invalid_tool_call"},"status":"error"}]`)), a)
	require.NoError(t, err)
	require.Contains(t, a.Requests()[0].Body, "one")
	require.Contains(t, a.Requests()[0].Body, "invalid_tool_call")
	require.Equal(t, 2, strings.Count(a.Requests()[0].Body, `"tool_use_id"`))
}

func TestThinkingIsSentBackWhereItWas(t *testing.T) {
	a := providertest.Start(t, said("tool_use",
		block(0, `{"type":"thinking","thinking":"","signature":""}`, `{"type":"thinking_delta","thinking":"h\ud83d"}`,
			`{"type":"thinking_delta","thinking":"\ude42m"}`, `{"type":"signature_delta","signature":"c2"}`, `{"type":"signature_delta","signature":"ln"}`),
		block(1, `{"type":"redacted_thinking","data":"c2VjcmV0"}`), text(2, "Let me look."),
		call(3, "a", "clock", `{"n":1}`), block(4, `{"type":"thinking","thinking":"and","signature":"eA"}`), call(5, "b", "tide", `{"n":2}`)),
		said("end_turn", text(0, "N4.")))
	m, err := anthropic.New(think.Settings{Key: providertest.Key, Model: "m", BaseURL: a.URL},
		option.WithJSONSet("thinking", map[string]any{"type": "enabled", "budget_tokens": 1024}))
	require.NoError(t, err)
	t.Cleanup(m.Close)
	next := providertest.NextStep(t, m, providertest.Question())
	_, err = m.Think(t.Context(), next)
	require.NoError(t, err)
	messages, _ := topics.Elements(read.Get(topics.Raw(a.Requests()[1].Body), "messages"))
	require.JSONEq(t, `[{"type":"thinking","thinking":"h🙂m","signature":"c2ln"},{"type":"redacted_thinking","data":"c2VjcmV0"},
		{"type":"text","text":"Let me look."},{"type":"tool_use","id":"a","name":"clock","input":{"n":1}},
		{"type":"thinking","thinking":"and","signature":"eA"},{"type":"tool_use","id":"b","name":"tide","input":{"n":2}}]`,
		string(read.Get(messages[1], "content")))
	for _, other := range []think.Settings{{Model: "other"}, {Model: "m"}} {
		b := providertest.Start(t, said("end_turn", text(0, "N4.")))
		if other.Model == "m" { // another server with the same API
			b.URL = strings.Replace(b.URL, "127.0.0.1", "localhost", 1)
		}
		_, err = provider.NewModel(t, b, other).Think(t.Context(), next)
		require.NoError(t, err)
		require.NotContains(t, b.Requests()[0].Body, "thinking")
	}
}
