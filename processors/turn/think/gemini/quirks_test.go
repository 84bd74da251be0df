package gemini_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/turn/think"
	read "github.com/turntable-streams/turntable/processors/turn/think/internal/provider"
	"github.com/turntable-streams/turntable/processors/turn/think/internal/providertest"
	"github.com/turntable-streams/turntable/topics"
)

func TestEmptyReplyIsAnError(t *testing.T) {
	for name, answer := range map[string]providertest.Answer{
		"nothing": said("STOP"), "blank": said("STOP", text(" \n")), "thoughts only": said("STOP", `{"text":"hm","thought":true}`),
	} {
		reply, err := ask(t, think.Settings{}, providertest.Question(), providertest.Start(t, answer))
		require.Equal(t, think.ErrEmpty, err, name)
		require.Equal(t, int64(100), reply.InputTokens)
	}
}

func TestParallelCallsWithOneIDAreTwoCalls(t *testing.T) {
	const call = `{"functionCall":{"id":"c","name":"clock"}}`
	reply, err := ask(t, think.Settings{}, providertest.Question(), providertest.Start(t, said("STOP", call, call)))
	require.NoError(t, err)
	require.Equal(t, []string{"c", "c-2"}, []string{reply.Calls()[0].ID, reply.Calls()[1].ID})
}

func TestHistoryOfOtherProvidersIsAccepted(t *testing.T) {
	provider.RequireAccepted(t, think.Settings{}, regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`),
		regexp.MustCompile(`^[a-zA-Z0-9_.:-]{1,64}$`), func(body topics.Raw) (s providertest.Sent) {
			tools, _ := topics.Elements(read.Get(body, "tools"))
			declared, _ := topics.Elements(read.Get(tools[0], "functionDeclarations"))
			for _, f := range declared {
				s.Tools = append(s.Tools, read.String(f, "name"))
			}
			contents, _ := topics.Elements(read.Get(body, "contents"))
			for _, c := range contents {
				parts, _ := topics.Elements(read.Get(c, "parts"))
				for _, p := range parts {
					if call := read.Get(p, "functionCall"); call != nil {
						s.Names = append(s.Names, read.String(call, "name"))
						s.Calls = append(s.Calls, read.String(call, "id"))
					}
					if result := read.Get(p, "functionResponse"); result != nil {
						s.Results = append(s.Results, read.String(result, "id"))
					}
				}
			}
			return s
		})
}

func TestThoughtSignaturesAreSentBack(t *testing.T) {
	a := providertest.Start(t, said("STOP", text("Let me look."), `{"functionCall":{"id":"a","name":"clock"},"thoughtSignature":"c2ln"}`,
		`{"functionCall":{"id":"b","name":"tide"}}`), said("STOP", text("N4.")))
	m := provider.NewModel(t, a, think.Settings{Model: "gemini-3-pro"})
	next := providertest.NextStep(t, m, providertest.Question())
	_, err := m.Think(t.Context(), next)
	require.NoError(t, err)
	contents, _ := topics.Elements(read.Get(topics.Raw(a.Requests()[1].Body), "contents"))
	require.JSONEq(t, `[{"text":"Let me look."},{"functionCall":{"id":"a","name":"clock"},"thoughtSignature":"c2ln"},
		{"functionCall":{"id":"b","name":"tide"}}]`, string(read.Get(contents[1], "parts")))
	b := providertest.Start(t, said("STOP", text("N4.")))
	_, err = provider.NewModel(t, b, think.Settings{Model: "gemini-4-pro"}).Think(t.Context(), next)
	require.NoError(t, err)
	require.NotContains(t, b.Requests()[0].Body, "c2ln", "it is of another model")
}

func TestErrorsInAStreamHaveTheStatusOfTheirWord(t *testing.T) {
	for word, want := range map[string]int{"UNAVAILABLE": 503, "RESOURCE_EXHAUSTED": 429, "INVALID_ARGUMENT": 400, "PERMISSION_DENIED": 403} {
		_, err := ask(t, think.Settings{}, providertest.Question(), providertest.Start(t,
			providertest.Events(append(begun("N"), `{"error":{"message":"x","status":"`+word+`"}}`)...)))
		var failed *think.ProviderError
		require.ErrorAs(t, err, &failed, word)
		require.Equal(t, want, failed.Status, word)
	}
}
