package gemini_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/think/gemini"
	"github.com/turntable-streams/turntable/processors/turn/think/internal/providertest"
	"github.com/turntable-streams/turntable/topics"
)

// chunk returns a chunk of a response with these parts.
func chunk(finish string, parts ...string) string {
	c := `{"candidates":[{"content":{"role":"model","parts":[` + strings.Join(parts, ",") + `]},"index":0`
	if finish != "" {
		c += `,"finishReason":"` + finish + `"`
	}
	return c + `}],"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":60,"candidatesTokenCount":15,` +
		`"thoughtsTokenCount":5,"totalTokenCount":120},"modelVersion":"m","responseId":"r"}`
}

func text(t string) string { return `{"text":` + strconv.Quote(t) + `}` }

func said(finish string, parts ...string) providertest.Answer {
	return providertest.Events(chunk(finish, parts...))
}

func begun(pieces ...string) (chunks []string) {
	for _, p := range pieces {
		chunks = append(chunks, chunk("", text(p)))
	}
	return chunks
}

func failure(status int, headers ...string) providertest.Answer {
	return providertest.JSON(status, `{"error":{"code":`+strconv.Itoa(status)+
		`,"message":"about Which berth?","status":"SOME_STATUS"}}`, headers...)
}

var provider = providertest.Provider{
	Name: "gemini",
	New:  func(s think.Settings) (providertest.Model, error) { return gemini.New(s) },
	Text: func(pieces ...string) providertest.Answer {
		return providertest.Events(append(begun(pieces...), chunk("STOP", text("")))...)
	},
	Begun: func(pieces ...string) providertest.Answer { return providertest.Events(begun(pieces...)...) },
	Error: failure,
	After: func() providertest.Answer {
		return providertest.JSON(429, `{"error":{"code":429,"message":"about Which berth?","status":"RESOURCE_EXHAUSTED",
			"details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure"},
				{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"7s"}]}}`)
	},
	Overloaded: func() providertest.Answer {
		return providertest.Events(append(begun("N"),
			`{"error":{"code":503,"message":"about Which berth?","status":"UNAVAILABLE"}}`)...)
	},
}

func TestModelBehavesAsEveryModel(t *testing.T) { provider.Run(t) }

func ask(t *testing.T, s think.Settings, step think.Step, a *providertest.API) (think.Reply, error) {
	t.Helper()
	return provider.NewModel(t, a, s).Think(t.Context(), step)
}

func TestRequestHasPromptAndTools(t *testing.T) {
	a := providertest.Start(t, said("STOP", text("N4.")))
	step := providertest.Question()
	step.Memoir, step.EphemeralPrompt = "Skipper.", "In one line."
	_, err := ask(t, think.Settings{System: "Be brief.", MaxTokens: 100, Tools: []think.Tool{providertest.Tool()}}, step, a)
	require.NoError(t, err)
	r := a.Requests()[0]
	require.Equal(t, "POST /v1beta/models/some-model:streamGenerateContent?alt=sse", r.Path)
	require.Equal(t, providertest.Key, r.Header.Get("X-Goog-Api-Key"))
	require.JSONEq(t, `{"contents":[{"role":"user","parts":[{"text":"Which berth?"}]}],
		"systemInstruction":{"role":"user","parts":[{"text":"Be brief."},
			{"text":"What you know of the user from earlier sessions:\nSkipper."},{"text":"In one line."}]},
		"generationConfig":{"maxOutputTokens":100},
		"tools":[{"functionDeclarations":[{"name":"berth_lookup","description":"Finds a berth.","parametersJsonSchema":
			{"type":"object","properties":{"at":{"type":"string"}},"additionalProperties":false}}]}]}`, r.Body)
}

func TestRequestCanBeConfigured(t *testing.T) {
	a := providertest.Start(t, said("STOP", text("N4.")))
	m, err := gemini.New(think.Settings{Key: "k", Model: "m", BaseURL: a.URL}, func(c *genai.GenerateContentConfig) {
		c.StopSequences = []string{"END"}
	})
	require.NoError(t, err)
	defer m.Close()
	_, err = m.Think(t.Context(), providertest.Question())
	require.NoError(t, err)
	require.Contains(t, a.Requests()[0].Body, `"stopSequences":["END"]`)
}

func TestEveryCallInThePromptHasItsResult(t *testing.T) {
	a := providertest.Start(t, said("STOP", text("N4.")))
	want := `[
		{"role":"user","parts":[{"text":"Result of an earlier call of a tool: {\"at\":\"17:00\"}"},
			{"text":"Which berth?"},{"inlineData":{"mimeType":"image/png","data":"iVBORw=="}}]},
		{"role":"model","parts":[{"text":"Let me look."},
			{"functionCall":{"id":"a","name":"berth_lookup","args":{"at":"18:00"}}SIGNATURE},
			{"functionCall":{"id":"b","name":"clock"}},{"functionCall":{"id":"c","name":"tide"}}]},
		{"role":"user","parts":[
			{"functionResponse":{"id":"a","name":"berth_lookup","response":{"output":{"berth":"N4"}}}},
			{"functionResponse":{"id":"b","name":"clock","response":{"error":"No result of this call was recorded."}}},
			{"functionResponse":{"id":"c","name":"tide","response":{"error":{"error":"no tide"}}}},
			{"text":"And now?"}]}]`
	for model, signature := range map[string]string{
		"gemini-2.5-flash": "", "gemma-3": "",
		"gemini-3.1-pro-preview": `,"thoughtSignature":"c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="`,
		"gemini-10-flash":        `,"thoughtSignature":"c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="`,
	} {
		t.Run(model, func(t *testing.T) {
			_, err := ask(t, think.Settings{Model: model}, providertest.Conversation(), a)
			require.NoError(t, err)
			all := a.Requests()
			contents, _ := topics.Lookup(topics.Raw(all[len(all)-1].Body), "contents")
			require.JSONEq(t, strings.Replace(want, "SIGNATURE", signature, 1), string(contents))
		})
	}
}

func TestParallelCallsAndUsage(t *testing.T) {
	a := providertest.Start(t, providertest.Events(
		chunk("", `{"text":"hm","thought":true}`), chunk("", text("Let me ")), chunk("", text("look.")),
		chunk("", `{"functionCall":{"name":"berth_lookup","args":{"b":1,"at":"18:00"}},"thoughtSignature":"eA=="}`,
			`{"functionCall":{"id":"x","name":"clock"}}`), chunk("STOP", text(""))))
	m := provider.NewModel(t, a, think.Settings{Model: "gemini-2.5-flash"})
	reply, stop, err := think.Collect(m.Stream(t.Context(), providertest.Question()))
	require.NoError(t, err)
	require.Equal(t, "tool_use", stop)
	require.Len(t, reply.Blocks, 3)
	require.Equal(t, "Let me look.", reply.Blocks[0].Text)
	first := reply.Calls()[0]
	require.Equal(t, []string{"berth_lookup", `{"at":"18:00","b":1}`}, []string{first.Name, string(first.Input)})
	require.True(t, strings.HasPrefix(first.ID, "call_"), first.ID)
	require.Equal(t, think.Call{ID: "x", Name: "clock", Input: topics.Raw("{}")}, reply.Calls()[1])
	require.Equal(t, []int64{100, 20}, []int64{reply.InputTokens, reply.OutputTokens})
	require.InDelta(t, (40*0.3+60*0.03+20*2.5)/1e6, *reply.Cost, 1e-12)
	again, err := m.Think(t.Context(), providertest.Question())
	require.NoError(t, err)
	require.Equal(t, reply, again, "a repeat of the step has the same IDs")
}

func TestRefusedOutputReportsWhatItUsed(t *testing.T) {
	reply, err := ask(t, think.Settings{}, providertest.Question(), providertest.Start(t, said("SAFETY", text("I"))))
	require.ErrorIs(t, err, think.ErrRefused)
	require.Equal(t, []int64{100, 20}, []int64{reply.InputTokens, reply.OutputTokens})
	require.Empty(t, reply.Blocks)
}

func TestStopReasons(t *testing.T) {
	const call = `{"functionCall":{"name":"clock"}}`
	for name, c := range map[string]struct {
		answer providertest.Answer
		want   error
	}{
		"text cut off":   {said("MAX_TOKENS", text("Berth N")), nil},
		"call cut off":   {said("MAX_TOKENS", call), think.ErrTruncated},
		"nothing at all": {said("MAX_TOKENS"), think.ErrTruncated},
		"safety":         {said("SAFETY", text("I")), think.ErrRefused},
		"prohibited":     {said("PROHIBITED_CONTENT"), think.ErrRefused},
		"prompt blocked": {providertest.Events(`{"promptFeedback":{"blockReason":"SAFETY"}}`), think.ErrRefused},
		"malformed call": {said("MALFORMED_FUNCTION_CALL"), think.ErrResponse},
		"new reason":     {said("BECAUSE", text("x")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ask(t, think.Settings{}, providertest.Question(), providertest.Start(t, c.answer))
			require.Equal(t, c.want, err)
		})
	}
}

func TestImagesByAddress(t *testing.T) {
	a := providertest.Start(t, said("STOP", text("N4.")))
	_, err := ask(t, think.Settings{}, providertest.Step(providertest.Message("user", `[
		{"type":"image","source":{"type":"url","url":"https://x.invalid/a.png?v=1"}},
		{"type":"image","source":{"type":"url","url":"https://x.invalid/b"}},
		{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"x"}}]`)), a)
	require.NoError(t, err)
	contents, _ := topics.Lookup(topics.Raw(a.Requests()[0].Body), "contents")
	require.JSONEq(t, `[{"role":"user","parts":[
		{"fileData":{"fileUri":"https://x.invalid/a.png?v=1","mimeType":"image/png"}},
		{"fileData":{"fileUri":"https://x.invalid/b","mimeType":"image/jpeg"}},
		{"text":"[document omitted: the model cannot read it]"}]}]`, string(contents))
	_, err = ask(t, think.Settings{}, providertest.Step(providertest.Message("user",
		`[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"Which berth?"}}]`)), a)
	require.Equal(t, think.ErrConversation, err)
}

func TestPricesAreComplete(t *testing.T) {
	for model := range gemini.Prices() {
		require.Positive(t, *gemini.Prices().Cost(model, think.Tokens{Input: 1, CacheRead: 1, CacheWrite: 1, Output: 1}), model)
	}
	require.InDelta(t, 0.5, *gemini.Prices().Cost("gemini-2.5-pro", think.Tokens{Input: 200_000, Output: 25_000}), 1e-9)
	require.InDelta(t, 0.75, *gemini.Prices().Cost("gemini-2.5-pro", think.Tokens{Input: 300_000}), 1e-9)
}
