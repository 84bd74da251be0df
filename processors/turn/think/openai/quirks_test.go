package openai_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/think/internal/providertest"
)

// tools returns settings with tools of these names.
// piece returns a delta with a piece of a call. arguments is JSON.
func TestListsOfPartsAreSpokenWithoutTheReasoning(t *testing.T) {
	for name, deltas := range map[string][]string{
		"thinking, then text": {
			`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"secret"}]}]}`,
			`{"content":[{"type":"text","text":"Berth "},{"type":"reference","reference_ids":[1]}]}`, `{"content":"N4."}`,
		},
		"in one list":       {`{"content":[{"type":"reasoning","text":"secret"},{"type":"text","text":"Berth N4."}]}`},
		"texts":             {`{"content":["Berth ",null,[["secret"]],7,{"type":"output_text","text":"N4."}]}`},
		"one part":          {`{"content":{"type":"text","text":"Berth N4."}}`},
		"reasoning members": {`{"reasoning_content":"secret","content":null}`, `{"reasoning":"secret","content":""}`, `{"content":"Berth N4."}`},
	} {
		t.Run(name, func(t *testing.T) {
			m := provider.NewModel(t, providertest.Start(t, said("stop", "", deltas...)), think.Settings{})
			for d, err := range m.Stream(t.Context(), providertest.Question()) {
				require.NoError(t, err)
				require.NotContains(t, d.Text+d.Thought, "secret")
			}
			reply, err := m.Think(t.Context(), providertest.Question())
			require.NoError(t, err)
			require.Equal(t, []think.Block{{Text: "Berth N4."}}, reply.Blocks)
		})
	}
}

func TestErrorsThatAreNullAreNone(t *testing.T) {
	null := func(chunk string) string { return strings.TrimSuffix(chunk, "}") + `, "error" : null}` }
	server := providertest.Start(t, providertest.Events(
		null(chunk(`{"content":"Berth ","error":null}`, "")), null(chunk(`{"content":"\"error\":null"}`, "")), null(chunk(`{}`, "stop")),
		null(usage), "[DONE]"))
	reply, err := ask(t, think.Settings{}, providertest.Question(), server)
	require.NoError(t, err)
	require.Equal(t, []think.Block{{Text: `Berth "error":null`}}, reply.Blocks)
}

func TestHalfCharactersOfPiecesAreJoined(t *testing.T) {
	reply, err := ask(t, think.Settings{}, providertest.Question(), providertest.Start(t,
		said("stop", "", `{"content":"a\ud83d"}`, `{"content":"\ude42 \ud83d"}`, `{"content":"b\ude42"}`, `{"content":[{"type":"text","text":"\ud83d"}]}`)))
	require.NoError(t, err)
	require.Equal(t, []think.Block{{Text: "a🙂 \uFFFDb\uFFFD\uFFFD"}}, reply.Blocks)
}

func TestErrorsInAStreamAreReadLikeStatuses(t *testing.T) {
	for failure, want := range map[string]struct {
		status           int
		transient, limit bool
		after            time.Duration
	}{
		`{"code":400,"message":"x"}`:           {400, false, false, 0},
		`{"code":"400","message":"x"}`:         {400, false, false, 0},
		`{"code":401}`:                         {401, false, false, 0},
		`{"code":402}`:                         {402, false, false, 0},
		`{"code":403}`:                         {403, false, false, 0},
		`{"code":404}`:                         {404, false, false, 0},
		`{"code":408}`:                         {408, true, false, 0},
		`{"code":429}`:                         {429, true, true, 0},
		`{"code":"429","type":"server_error"}`: {429, true, true, 0},
		`{"code":429,"metadata":{"headers":{"Retry-After":"7"}}}`: {429, true, true, 7 * time.Second},
		`{"code":429,"retry_after":7}`:                            {429, true, true, 7 * time.Second},
		`{"code":429,"details":[{"retryDelay":"7s"}]}`:            {429, true, true, 7 * time.Second},
		`{"code":500}`:                           {500, true, false, 0},
		`{"code":502}`:                           {502, true, false, 0},
		`{"code":503}`:                           {503, true, false, 0},
		`{"code":0}`:                             {500, true, false, 0},
		`{"code":1302,"type":"rate_limit"}`:      {429, true, true, 0},
		`{"status":429,"code":"slow_down"}`:      {429, true, true, 0},
		`{"status":"RESOURCE_EXHAUSTED"}`:        {429, true, true, 0},
		`{"type":"BadRequestError","code":null}`: {400, false, false, 0},
		`{"code":"invalid_api_key"}`:             {401, false, false, 0},
		`{"code":"context_length_exceeded"}`:     {400, false, false, 0},
		`{"code":"model_not_found"}`:             {404, false, false, 0},
		`{"type":"overloaded_error"}`:            {529, true, false, 0},
		`{"type":"authentication_error"}`:        {401, false, false, 0},
		`{"type":"permission_error"}`:            {403, false, false, 0},
		`{"code":"insufficient_quota"}`:          {429, false, false, 0},
		`"Which berth?"`:                         {500, true, false, 0},
	} {
		whole := `{"object":"error",` + strings.TrimPrefix(failure, "{")
		for where, data := range map[string]string{
			"alone": `{"error":` + failure + `}`,
			"in a chunk": `{"id":"gen-1","object":"chat.completion.chunk","created":1,"model":"m","error":` + failure +
				`,"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`,
			"in a choice":    `{"id":"gen-1","choices":[{"index":0,"delta":{"content":""},"error":` + failure + `,"finish_reason":"error"}]}`,
			"without member": whole,
		} {
			if where == "without member" && !strings.HasPrefix(failure, "{") {
				continue
			}
			t.Run(failure+" "+where, func(t *testing.T) {
				answer := providertest.Events(append(begun("Berth"), data, "[DONE]")...)
				_, err := ask(t, think.Settings{}, providertest.Question(), providertest.Start(t, answer))
				providertest.RequireQuotesNothing(t, err)
				var failed *think.ProviderError
				require.ErrorAs(t, err, &failed)
				require.Equal(t, want.status, failed.Status)
				var u *think.Unavailable
				require.Equal(t, want.transient, errors.As(err, &u))
				if want.transient {
					require.Equal(t, want.limit, u.RateLimit)
					require.Equal(t, want.after, u.After)
				}
			})
		}
	}
	answer := providertest.Events(append(begun(), `{"error":{"code":429}}`)...)
	answer.Headers["Retry-After"] = "7"
	_, err := ask(t, think.Settings{}, providertest.Question(), providertest.Start(t, answer))
	var u *think.Unavailable
	require.ErrorAs(t, err, &u)
	require.Equal(t, 7*time.Second, u.After, "of the response")
}

func TestReasonsOfCompatibleServers(t *testing.T) {
	for _, reason := range []string{"end", "eos", "STOP", "end_turn", "stop_sequence", "function_call", "length_unknown", "unknown"} {
		reply, err := ask(t, think.Settings{}, providertest.Question(), providertest.Start(t, said(reason, "Berth N4.")))
		require.NoError(t, err, reason)
		require.Equal(t, []think.Block{{Text: "Berth N4."}}, reply.Blocks)
		reply, err = ask(t, think.Settings{}, providertest.Question(), providertest.Start(t, said(reason, "", piece("0", "c", "look", `"{}"`))))
		require.NoError(t, err, reason)
		require.Len(t, reply.Calls(), 1)
	}
	for reason, want := range map[string]error{
		"MAX_TOKENS": nil, "model_length": nil, "SAFETY": think.ErrRefused, "sensitive": think.ErrRefused, "refusal": think.ErrRefused,
	} {
		_, err := ask(t, think.Settings{}, providertest.Question(), providertest.Start(t, said(reason, "Berth N4.")))
		require.Equal(t, want, err, reason)
	}
	for _, answer := range []providertest.Answer{
		said("error", "Berth N"), said("insufficient_system_resource", "Berth N"), said("abort", "Berth N"),
		providertest.Events(append(begun("Berth N"), "[DONE]")...), // ended in order, without a reason
	} {
		_, err := ask(t, think.Settings{}, providertest.Question(), providertest.Start(t, answer))
		var u *think.Unavailable
		require.ErrorAs(t, err, &u, "a text that may be cut off is no answer, and the model is called again")
	}
}

func TestEmptyReplyIsAnError(t *testing.T) {
	for name, answer := range map[string]providertest.Answer{
		"nothing": said("stop", ""), "blank": said("stop", " \n"), "reasoning only": said("stop", "", `{"reasoning_content":"hm"}`),
		"empty list": said("stop", "", `{"content":[]}`), "thinking list": said("stop", "", `{"content":[{"type":"thinking","thinking":"hm"}]}`),
	} {
		reply, err := ask(t, think.Settings{}, providertest.Question(), providertest.Start(t, answer))
		require.Equal(t, think.ErrEmpty, err, name)
		require.Equal(t, int64(100), reply.InputTokens)
	}
}

// read reads a request.
func TestHistoryOfOtherProvidersIsAccepted(t *testing.T) {
	simple := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	provider.RequireAccepted(t, think.Settings{}, simple, regexp.MustCompile(`^[a-zA-Z0-9_-]{1,40}$`), read)
	provider.RequireAccepted(t, think.Settings{Model: "mistral-large"}, simple, regexp.MustCompile(`^[a-zA-Z0-9]{9}$`), read)
	provider.RequireAccepted(t, think.Settings{Model: "kimi-k2"}, simple, regexp.MustCompile(`^[a-zA-Z0-9_.:-]{1,64}$`), read)
}

// Turns of other implementations may lose the metadata of messages.
