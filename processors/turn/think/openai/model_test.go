package openai_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/think/internal/providertest"
	"github.com/turntable-streams/turntable/processors/turn/think/openai"
	"github.com/turntable-streams/turntable/topics"
)

// chunk returns a chunk of a completion.
func chunk(delta, finish string) string {
	if finish == "" {
		finish = "null"
	} else {
		finish = strconv.Quote(finish)
	}
	return `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` +
		delta + `,"logprobs":null,"finish_reason":` + finish + `}],"usage":null}`
}

const usage = `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":` +
	`{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":64},` +
	`"completion_tokens_details":{"reasoning_tokens":5}}}`

func begun(pieces ...string) []string {
	chunks := []string{chunk(`{"role":"assistant","content":"","refusal":null}`, "")}
	for _, p := range pieces {
		chunks = append(chunks, chunk(`{"content":`+strconv.Quote(p)+`}`, ""))
	}
	return chunks
}

// said returns a completion with these deltas after its text.
func said(finish, text string, deltas ...string) providertest.Answer {
	chunks := begun()
	if text != "" {
		chunks = begun(text)
	}
	for _, d := range deltas {
		chunks = append(chunks, chunk(d, ""))
	}
	return providertest.Events(append(chunks, chunk(`{}`, finish), usage, "[DONE]")...)
}

func failure(status int, headers ...string) providertest.Answer {
	return providertest.JSON(status, `{"error":{"message":"about Which berth?","type":"server_error","param":null,"code":null}}`,
		append(headers, "x-request-id", "req_7")...)
}

var provider = providertest.Provider{
	Name: "openai", Idempotent: true,
	New: func(s think.Settings) (providertest.Model, error) { return openai.New(s) },
	Text: func(pieces ...string) providertest.Answer {
		return providertest.Events(append(begun(pieces...), chunk(`{}`, "stop"), usage, "[DONE]")...)
	},
	Begun: func(pieces ...string) providertest.Answer { return providertest.Events(begun(pieces...)...) },
	Error: failure,
	After: func() providertest.Answer { return failure(429, "retry-after", "7", "retry-after-ms", "7000") },
	Overloaded: func() providertest.Answer {
		return providertest.Events(append(begun("N"),
			`{"error":{"message":"about Which berth?","type":"server_error","param":null,"code":null}}`)...)
	},
}

func TestModelBehavesAsEveryModel(t *testing.T) { provider.Run(t) }

func ask(t *testing.T, s think.Settings, step think.Step, a *providertest.API) (think.Reply, error) {
	t.Helper()
	return provider.NewModel(t, a, s).Think(t.Context(), step)
}

func TestRequestHasPromptAndTools(t *testing.T) {
	a := providertest.Start(t, said("stop", "N4."))
	step := providertest.Question()
	step.Memoir, step.EphemeralPrompt = "Skipper.", "In one line."
	_, err := ask(t, think.Settings{System: "Be brief.", MaxTokens: 100, Tools: []think.Tool{providertest.Tool()}}, step, a)
	require.NoError(t, err)
	r := a.Requests()[0]
	require.Equal(t, "POST /chat/completions", r.Path)
	require.Equal(t, "Bearer "+providertest.Key, r.Header.Get("Authorization"))
	require.JSONEq(t, `{"model":"some-model","max_completion_tokens":100,"stream":true,"stream_options":{"include_usage":true},
		"messages":[{"role":"system","content":"Be brief.\n\nWhat you know of the user from earlier sessions:\nSkipper.\n\nIn one line."},
			{"role":"user","content":"Which berth?"}],
		"tools":[{"type":"function","function":{"name":"berth_lookup","description":"Finds a berth.","parameters":
			{"type":"object","properties":{"at":{"type":"string"}},"additionalProperties":false}}}]}`, r.Body)
	require.Contains(t, r.Body, string(providertest.Tool().InputSchema), "byte for byte")
}

func TestCacheKeyOfTheSessionIsSentToOpenAIOnly(t *testing.T) {
	a := providertest.Start(t, said("stop", "N4."))
	m, err := openai.New(think.Settings{Key: providertest.Key, Model: "gpt-5"}, func(r *http.Request) {
		require.Equal(t, "https://api.openai.com/v1/chat/completions", r.URL.String())
		r.URL, _ = url.Parse(a.URL + "/chat/completions")
	})
	require.NoError(t, err)
	defer m.Close()
	other := providertest.Question()
	other.SessionID = "other"
	for _, s := range []think.Step{providertest.Question(), providertest.Conversation(), other} {
		_, err = m.Think(t.Context(), s)
		require.NoError(t, err)
	}
	var keys []string
	for _, r := range a.Requests() {
		key, _ := topics.Lookup(topics.Raw(r.Body), "prompt_cache_key")
		keys = append(keys, topics.Text(key))
	}
	require.Len(t, keys[0], 40)
	require.Equal(t, keys[0], keys[1])
	require.NotEqual(t, keys[0], keys[2])
	_, err = ask(t, think.Settings{}, providertest.Question(), a)
	require.NoError(t, err)
	require.NotContains(t, a.Requests()[3].Body, "prompt_cache_key")
}

// A change may replace the URL and the body: the header Host and the length follow.
func TestChangedRequestIsSent(t *testing.T) {
	var host string
	var length int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, length = r.Host, r.ContentLength
		body, err := io.ReadAll(r.Body)
		if err != nil || !strings.Contains(string(body), `"reasoning_effort":"low"`) || int(length) != len(body) {
			t.Errorf("%v: %d bytes: %s", err, length, body)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, data := range append(begun("N4."), chunk(`{}`, "stop"), "[DONE]") {
			_, _ = fmt.Fprint(w, "data: ", data, "\n\n")
		}
	}))
	defer server.Close()
	m, err := openai.New(think.Settings{Key: providertest.Key, Model: "gpt-5"}, openai.WithMember("reasoning_effort", "low"), func(r *http.Request) {
		r.URL, _ = url.Parse(server.URL + "/chat/completions")
	})
	require.NoError(t, err)
	defer m.Close()
	_, err = m.Think(t.Context(), providertest.Question())
	require.NoError(t, err)
	require.Equal(t, strings.TrimPrefix(server.URL, "http://"), host)
	require.Positive(t, length)
}

func TestAddressAndHeadersAreThoseOfTheEnvironment(t *testing.T) {
	a := providertest.Start(t, said("stop", "N4."), said("stop", "N4."), said("stop", "N4."))
	t.Setenv("OPENAI_ORG_ID", "org")
	t.Setenv("OPENAI_PROJECT_ID", "project")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-One: 1\nno header\nAuthorization: other\r\nx-two:2")
	for _, path := range []string{"/v1", "/v1/", ""} {
		t.Setenv("OPENAI_BASE_URL", a.URL+path)
		m, err := openai.New(think.Settings{Key: providertest.Key, Model: "m"})
		require.NoError(t, err)
		_, err = m.Think(t.Context(), providertest.Question())
		m.Close()
		require.NoError(t, err)
		r := a.Requests()[len(a.Requests())-1]
		require.Equal(t, "POST "+strings.TrimSuffix(path, "/")+"/chat/completions", r.Path)
		for name, want := range map[string]string{
			"OpenAI-Organization": "org", "OpenAI-Project": "project", "X-One": "1", "X-Two": "2", "Authorization": "Bearer " + providertest.Key,
		} {
			require.Equal(t, want, r.Header.Get(name), name)
		}
	}
}

// Every request of such settings would fail, and would be repeated as if the server were unreachable.
func TestSettingsThatNoRequestCanHaveAreRefused(t *testing.T) {
	const secret = "s3cret"
	refused := func(s think.Settings) {
		t.Helper()
		s.Model = "m"
		_, err := openai.New(s)
		require.ErrorIs(t, err, think.ErrSettings)
		require.NotContains(t, err.Error(), secret)
	}
	refused(think.Settings{Key: secret + "\n"})
	for _, base := range []string{secret, "ftp://" + secret, "https://", "http://%zz" + secret, "://" + secret} {
		refused(think.Settings{Key: "key", BaseURL: base})
	}
	for _, headers := range []string{"bad name: " + secret, "X-One: a\x01" + secret, ": " + secret} {
		t.Setenv("OPENAI_CUSTOM_HEADERS", headers)
		refused(think.Settings{Key: "key"})
	}
}

func TestEveryCallInThePromptHasItsResult(t *testing.T) {
	a := providertest.Start(t, said("stop", "N4."))
	_, err := ask(t, think.Settings{}, providertest.Conversation(), a)
	require.NoError(t, err)
	messages, _ := topics.Lookup(topics.Raw(a.Requests()[0].Body), "messages")
	require.JSONEq(t, `[
		{"role":"user","content":[{"type":"text","text":"Result of an earlier call of a tool: {\"at\":\"17:00\"}"},
			{"type":"text","text":"Which berth?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw=="}}]},
		{"role":"assistant","content":"Let me look.","tool_calls":[
			{"id":"a","type":"function","function":{"name":"berth_lookup","arguments":"{\"at\":\"18:00\"}"}},
			{"id":"b","type":"function","function":{"name":"clock","arguments":"{}"}},
			{"id":"c","type":"function","function":{"name":"tide","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"a","content":"{\"berth\":\"N4\"}"},
		{"role":"tool","tool_call_id":"b","content":"Error: No result of this call was recorded."},
		{"role":"tool","tool_call_id":"c","content":"Error: {\"error\":\"no tide\"}"},
		{"role":"user","content":"And now?"}]`, string(messages))
}

func TestParallelCallsAndUsage(t *testing.T) {
	a := providertest.Start(t, said("tool_calls", "Let me look.",
		`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"berth_lookup","arguments":""}}]}`,
		`{"tool_calls":[{"index":0,"function":{"arguments":"{\"at\":"}}]}`,
		`{"tool_calls":[{"index":0,"function":{"arguments":"\"18:00\"}"}}]}`,
		`{"tool_calls":[{"index":1,"id":"call_2","type":"function","function":{"name":"clock","arguments":"{}"}}]}`))
	m := provider.NewModel(t, a, think.Settings{Model: "gpt-5"})
	reply, stop, err := think.Collect(m.Stream(t.Context(), providertest.Question()))
	require.NoError(t, err)
	require.Equal(t, "tool_use", stop)
	require.Equal(t, []think.Block{
		{Text: "Let me look."},
		{Call: &think.Call{ID: "call_1", Name: "berth_lookup", Input: topics.Raw(`{"at":"18:00"}`)}},
		{Call: &think.Call{ID: "call_2", Name: "clock", Input: topics.Raw(`{}`)}},
	}, reply.Blocks)
	require.Equal(t, []int64{100, 20}, []int64{reply.InputTokens, reply.OutputTokens})
	require.InDelta(t, (36*1.25+64*0.125+20*10)/1e6, *reply.Cost, 1e-12)
}

// Some compatible servers send whole calls with one index and no ID, and the finish reason stop.
func TestCallsOfCompatibleServers(t *testing.T) {
	a := providertest.Start(t, said("stop", "",
		`{"tool_calls":[{"index":0,"id":"x","function":{"name":"clock","arguments":"{\"n\":1}"}}]}`,
		`{"tool_calls":[{"index":0,"id":"y","function":{"name":"clock","arguments":"{\"n\":2}"}}]}`,
		`{"tool_calls":[{"index":1,"function":{"name":"clock"}}]}`))
	reply, err := ask(t, think.Settings{}, providertest.Question(), a)
	require.NoError(t, err)
	calls := reply.Calls()
	require.Len(t, calls, 3)
	require.Equal(t, []string{"x", `{"n":1}`, "y", `{"n":2}`, "{}"},
		[]string{calls[0].ID, string(calls[0].Input), calls[1].ID, string(calls[1].Input), string(calls[2].Input)})
	require.True(t, strings.HasPrefix(calls[2].ID, "call_"), calls[2].ID)
	again, err := ask(t, think.Settings{}, providertest.Question(), a)
	require.NoError(t, err)
	require.Equal(t, calls, again.Calls(), "a repeat of the step has the same IDs")
}

func TestRefusedOutputReportsWhatItUsed(t *testing.T) {
	reply, err := ask(t, think.Settings{}, providertest.Question(), providertest.Start(t, said("content_filter", "I")))
	require.ErrorIs(t, err, think.ErrRefused)
	require.Equal(t, []int64{100, 20}, []int64{reply.InputTokens, reply.OutputTokens})
	require.Empty(t, reply.Blocks)
}

func TestStopReasons(t *testing.T) {
	const half = `{"tool_calls":[{"index":0,"id":"x","function":{"name":"clock","arguments":"{\"n"}}]}`
	for name, c := range map[string]struct {
		answer providertest.Answer
		want   error
	}{
		"text cut off":     {said("length", "Berth N"), nil},
		"call cut off":     {said("length", "", half), think.ErrTruncated},
		"nothing at all":   {said("length", ""), think.ErrTruncated},
		"filter":           {said("content_filter", "I"), think.ErrRefused},
		"refusal":          {said("stop", "", `{"refusal":"I cannot"}`), think.ErrRefused},
		"new reason":       {said("because", "x"), nil},
		"no call":          {said("tool_calls", "x"), think.ErrResponse},
		"arguments":        {said("tool_calls", "", half), think.ErrResponse},
		"arguments, array": {said("tool_calls", "", strings.Replace(half, `{\"n`, `[1]`, 1)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ask(t, think.Settings{}, providertest.Question(), providertest.Start(t, c.answer))
			require.Equal(t, c.want, err)
		})
	}
}

func TestExhaustedQuotaIsNotRetried(t *testing.T) {
	body := `{"error":{"message":"about Which berth?","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`
	for name, answer := range map[string]providertest.Answer{
		"response": providertest.JSON(429, body), "stream": providertest.Events(body),
	} {
		t.Run(name, func(t *testing.T) {
			a := providertest.Start(t, answer)
			_, err := ask(t, think.Settings{}, providertest.Question(), a)
			var failed *think.ProviderError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, "insufficient_quota", failed.Type)
			require.Len(t, a.Requests(), 1)
		})
	}
}

func TestErrorsInAStreamHaveTheStatusOfTheirType(t *testing.T) {
	for body, want := range map[string]int{
		`{"error":{"message":"x","type":"tokens","code":"rate_limit_exceeded"}}`: 429,
		`{"error":{"message":"x","type":"invalid_request_error"}}`:               400,
		`{"error":"x"}`: 500,
	} {
		_, err := ask(t, think.Settings{}, providertest.Question(), providertest.Start(t, providertest.Events(body)))
		var failed *think.ProviderError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, want, failed.Status)
	}
}

func TestPricesAreComplete(t *testing.T) {
	for model := range openai.Prices() {
		require.Positive(t, *openai.Prices().Cost(model, think.Tokens{Input: 1, CacheRead: 1, CacheWrite: 1, Output: 1}), model)
	}
	require.Nil(t, openai.Prices().Cost("gpt-5.4", think.Tokens{Input: 300_000}), "long prompts have another price")
}
