package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestLaterSessionKnowsWhatAnEarlierOneSaid(t *testing.T) {
	out, errs := new(buffer), new(buffer)
	in := strings.NewReader("Please remember that my dog is Argos.\n")
	require.Zero(t, command(deadline(t), []string{"-memory"}, in, out, errs), errs)
	require.Empty(t, errs.String())
	require.Regexp(t, firstAnswer, out)
	require.NotContains(t, out.String(), "-dlq")
	// The memory is made of these, but a reader of several topics may print it first.
	require.Regexp(t, `orchestrator-session-end +demo +the session has ended`, out)
	require.Regexp(t, `orchestrator-memoir-context-session-end +mira +\d+ messages, memory ""`, out)
	rest := out.String()
	for _, step := range []string{
		`asked    Please remember that my boat is the Alba\.`,
		`orchestrator-memoir-lookups +mira +user input, to get the memory`,
		`answer   I will remember it\.`,
		`orchestrator-session-control +demo +end`,
		`orchestrator-memoir-context +mira +my boat is the Alba`,
		`asked    What do you remember about me\?`,
		`orchestrator-enriched-message-input +demo-later +user input, 0 messages of history`,
		`answer   You told me: your boat is the Alba\.`,
		`answer   I will remember it\.`,
	} {
		at := regexp.MustCompile(`(?m)` + step).FindStringIndex(rest)
		require.NotNil(t, at, "%s in\n%s", step, out)
		rest = rest[at[1]:]
	}
}

func TestWorkerKeepsEachFactOnce(t *testing.T) {
	snapshot := `{"memoir_context":"my boat is the Alba","think_response":{"previous_messages":[` +
		`{"role":"user","content":"Remember my boat is the Alba."},{"role":"assistant","content":"remember my hat"},` +
		`{"role":"user","content":"Please remember that my dog is Argos"}]}}`
	answers, err := remember("a").answer(&kgo.Record{Key: []byte("mira"), Value: []byte(snapshot), Headers: []kgo.RecordHeader{
		{Key: "turntable.id", Value: []byte("end/snapshot/1")}, {Key: "turntable.memoir-version", Value: []byte("7")},
	}})
	require.NoError(t, err)
	require.Len(t, answers, 1)
	require.Equal(t, "a-memoir-context", answers[0].Topic)
	require.Equal(t, "mira", string(answers[0].Key))
	require.Equal(t, "my boat is the Alba\nmy dog is Argos", string(answers[0].Value))
	require.Equal(t, "end/snapshot/1/memory", header(answers[0], "turntable.id"))
	require.Equal(t, "7", header(answers[0], "turntable.memoir-version"))

	_, err = remember("a").answer(&kgo.Record{Value: []byte("{")})
	require.Error(t, err)
}
