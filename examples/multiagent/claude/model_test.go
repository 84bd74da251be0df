package claude_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/examples/multiagent/claude"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

func TestModelCallsAToolAndReadsItsResult(t *testing.T) {
	a := newAPI(t,
		said("tool_use", `[{"type":"text","text":"Let me look."},
			{"type":"tool_use","id":"toolu_1","name":"berth_lookup","input":{"at":"18:00"}}]`),
		said("end_turn", `[{"type":"text","text":"Berth N4."}]`))
	m := newModel(t, a, claude.Settings{
		Name: "some-model", System: "Be brief.", MaxTokens: 100, Prices: &claude.Prices{Input: 1, Output: 5},
		Tools: []claude.Tool{{
			Name: "berth_lookup", Description: "Finds a berth.",
			InputSchema: topics.Raw(`{"type":"object","properties":{"at":{"type":"string"}},"additionalProperties":false}`),
		}},
	})
	s := question()
	s.Memoir = "Skipper."
	first, err := m.Think(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, "Let me look.", first.Blocks[0].Text)
	called := think.Call{ID: "toolu_1", Name: "berth_lookup", Input: topics.Raw(`{"at":"18:00"}`)}
	require.Equal(t, []think.Call{called}, first.Calls())
	require.Equal(t, []int64{100, 20}, []int64{first.InputTokens, first.OutputTokens})
	require.InDelta(t, 0.0002, *first.Cost, 1e-12)
	method, body, _ := strings.Cut(a.bodies[0], " {")
	require.Equal(t, "POST /v1/messages", method)
	require.JSONEq(t, `{"model":"some-model","max_tokens":100,
		"system":[{"type":"text","text":"Be brief.\n\nWhat you know of the user from earlier sessions:\nSkipper."}],
		"messages":[{"role":"user","content":[{"type":"text","text":"Which berth?"}]}],
		"tools":[{"name":"berth_lookup","description":"Finds a berth.","input_schema":
			{"type":"object","properties":{"at":{"type":"string"}},"additionalProperties":false}}]}`, "{"+body)
	require.Equal(t, key, a.headers[0].Get("X-Api-Key"))

	second, err := m.Think(t.Context(), step(
		message("user", `"Which berth?"`),
		message("assistant", `[{"type":"text","text":"Let me look."},
			{"type":"tool_use","id":"toolu_1","name":"berth_lookup","input":{"at":"18:00"}}]`),
		message("tool", `[{"tool_use_id":"toolu_1","name":"berth_lookup","result":{"berth":"N4"},"status":"success"}]`),
	))
	require.NoError(t, err)
	require.Equal(t, []think.Block{{Text: "Berth N4."}}, second.Blocks)
	_, body, _ = strings.Cut(a.bodies[1], " {")
	require.Contains(t, body, `"tool_use_id":"toolu_1"`)
	require.Contains(t, body, `{\"berth\":\"N4\"}`)
}

func TestConversationIsTranslatedForTheAPI(t *testing.T) {
	for name, c := range map[string]struct {
		messages []topics.Message
		want     string
	}{
		"one role after another is one message": {
			[]topics.Message{message("user", `"a"`), message("user", `"b"`), message("assistant", `"c"`)},
			`[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
				{"role":"assistant","content":[{"type":"text","text":"c"}]}]`,
		},
		"results, failed ones as errors, and null": {
			[]topics.Message{message("tool", `[{"tool_use_id":"t1","name":"x","result":{"error":"no"},"status":"error"},
				{"tool_use_id":"t2","name":"x","result":null,"status":"success"}]`)},
			`[{"role":"user","content":[
				{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":[{"type":"text","text":"{\"error\":\"no\"}"}]},
				{"type":"tool_result","tool_use_id":"t2","is_error":false,"content":[{"type":"text","text":"{}"}]}]}]`,
		},
		"blocks as they came": {
			[]topics.Message{message("user", `[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},"b",7,null]`)},
			`[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},
				{"type":"text","text":"b"}]}]`,
		},
		"blank and null content is left out": {
			[]topics.Message{{}, message("user", `" "`), message("user", `[]`), message("user", `7`)},
			`[{"role":"user","content":[{"type":"text","text":"7"}]}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t, said("end_turn", `[{"type":"text","text":"x"}]`))
			_, err := newModel(t, a, claude.Settings{}).Think(t.Context(), step(c.messages...))
			require.NoError(t, err)
			_, messages, _ := strings.Cut(a.bodies[0], `"messages":`)
			messages, _, _ = strings.Cut(messages, `,"model"`)
			require.JSONEq(t, c.want, messages)
		})
	}
	for _, messages := range [][]topics.Message{{message("user", `""`)}, {message("tool", `[7]`)}} {
		_, err := newModel(t, newAPI(t, answer{}), claude.Settings{}).Think(t.Context(), step(messages...))
		require.ErrorIs(t, err, claude.ErrConversation)
	}
}

func TestTransientErrorsAreRetried(t *testing.T) {
	for status, kind := range map[int]string{429: "rate_limit_error", 500: "api_error", 529: "overloaded_error"} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			a := newAPI(t, refused(status, kind), refused(status, kind), said("end_turn", `[{"type":"text","text":"N4."}]`))
			r, err := newModel(t, a, claude.Settings{}).Think(t.Context(), question())
			require.NoError(t, err)
			require.Equal(t, "N4.", r.Blocks[0].Text)
			require.Equal(t, 3, a.asked())
		})
	}
}

func TestRetryWaitsForRetryAfter(t *testing.T) {
	a := newAPI(t, refused(429, "rate_limit_error", "retry-after-ms", "", "retry-after", "1"),
		said("end_turn", `[{"type":"text","text":"N4."}]`))
	begun := time.Now()
	_, err := newModel(t, a, claude.Settings{}).Think(t.Context(), question())
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(begun), time.Second)
}

func TestRetriesAreBounded(t *testing.T) {
	a := newAPI(t, refused(529, "overloaded_error"))
	_, err := newModel(t, a, claude.Settings{Attempts: 3}).Think(t.Context(), question())
	require.EqualError(t, err, "claude: status 529 (overloaded_error), request req_7")
	var status *claude.StatusError
	require.ErrorAs(t, err, &status)
	require.Equal(t, 529, status.Status)
	require.Equal(t, 3, a.asked())
}

func TestRetryDoesNotWaitBeyondTheStepsDeadline(t *testing.T) {
	a := newAPI(t, refused(429, "rate_limit_error", "retry-after-ms", "3600000"))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := newModel(t, a, claude.Settings{}).Think(ctx, question())
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestPermanentErrorsAreNotRetried(t *testing.T) {
	const unreadable = "claude: response cannot be read"
	for name, c := range map[string]struct {
		answer answer
		want   string
	}{
		"key":        {refused(401, "authentication_error"), "claude: status 401 (authentication_error), request req_7"},
		"body":       {refused(400, "invalid_request_error"), "claude: status 400 (invalid_request_error), request req_7"},
		"odd type":   {refused(403, "Which berth?"), "claude: status 403, request req_7"},
		"no JSON":    {answer{status: 200, body: `{"Which berth?`}, unreadable},
		"other JSON": {answer{status: 200, body: `{"hello":"Which berth?"}`}, unreadable},
		"empty":      {answer{status: 200}, unreadable},
		"page":       {answer{200, "<html>", map[string]string{"Content-Type": "text/html"}}, unreadable},
		"redirect":   {answer{302, "", map[string]string{"Location": "http://x.invalid/"}}, unreadable},
		"new stop":   {said("because", `[{"type":"text","text":"x"}]`), unreadable},
		"no call":    {said("tool_use", `[]`), unreadable},
		"call cut off": {
			said("max_tokens", `[{"type":"tool_use","id":"t","name":"n","input":{}}]`),
			"claude: response was cut off at the token limit",
		},
		"nothing in all": {said("max_tokens", `[]`), "claude: response was cut off at the token limit"},
		"refusal":        {said("refusal", `[]`), "claude: the model refused to answer"},
		"pause":          {said("pause_turn", `[]`), claude.ErrPaused.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t, c.answer)
			_, err := newModel(t, a, claude.Settings{}).Think(t.Context(), question())
			require.EqualError(t, err, c.want)
			require.NotContains(t, err.Error(), "berth")
			require.NotContains(t, err.Error(), key)
			require.Equal(t, 1, a.asked())
		})
	}
}

func TestTextThatIsCutOffIsAReply(t *testing.T) {
	a := newAPI(t, said("max_tokens", `[{"type":"text","text":"Berth N"}]`))
	r, err := newModel(t, a, claude.Settings{}).Think(t.Context(), question())
	require.NoError(t, err)
	require.Equal(t, "Berth N", r.Blocks[0].Text)
	require.Nil(t, r.Cost, "no prices")
}

func TestUnreachableAPIIsAnError(t *testing.T) {
	a := newAPI(t, answer{})
	m := newModel(t, a, claude.Settings{Attempts: 1})
	a.Close()
	_, err := m.Think(t.Context(), question())
	require.ErrorIs(t, err, claude.ErrUnreachable)
	require.NotContains(t, err.Error(), "127.0.0.1")
}

func TestRequestTimesOut(t *testing.T) {
	release := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-release
	}))
	defer hangs.Close()
	defer close(release)
	m, err := claude.New(claude.Settings{Key: key, Attempts: 1, Timeout: 50 * time.Millisecond},
		option.WithBaseURL(hangs.URL))
	require.NoError(t, err)
	defer m.Close()
	_, err = m.Think(t.Context(), question())
	require.ErrorIs(t, err, claude.ErrTimeout)
}

func TestCanceledContextEndsTheRequest(t *testing.T) {
	a := newAPI(t, refused(529, "overloaded_error", "retry-after-ms", "3600000"))
	ctx, stop := context.WithCancel(t.Context())
	asked := make(chan error, 1)
	m := newModel(t, a, claude.Settings{})
	go func() {
		_, err := m.Think(ctx, question())
		asked <- err
	}()
	require.Eventually(t, func() bool { return a.asked() == 1 }, time.Minute, time.Millisecond)
	stop()
	require.ErrorIs(t, <-asked, context.Canceled)
}

func TestEnvironmentSetsTheAddress(t *testing.T) {
	a := newAPI(t, said("end_turn", `[{"type":"text","text":"N4."}]`))
	t.Setenv("ANTHROPIC_BASE_URL", a.URL)
	m, err := claude.New(claude.Settings{Key: key})
	require.NoError(t, err)
	defer m.Close()
	_, err = m.Think(t.Context(), question())
	require.NoError(t, err)
	require.Contains(t, a.bodies[0], `"model":"`+claude.DefaultName+`"`)
}

func TestInvalidSettingsAreRejected(t *testing.T) {
	for _, s := range []claude.Settings{
		{},
		{Key: " "},
		{Key: key, MaxTokens: -1},
		{Key: key, Attempts: -1},
		{Key: key, Timeout: -1},
		{Key: key, Tools: []claude.Tool{{Name: "x", InputSchema: topics.Raw("[]")}}},
		{Key: key, Tools: []claude.Tool{{InputSchema: topics.Raw("{}")}}},
	} {
		_, err := claude.New(s)
		require.True(t, errors.Is(err, claude.ErrSettings))
		require.NotContains(t, err.Error(), key)
	}
}
