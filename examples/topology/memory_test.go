package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/memoir/updater"
	"github.com/turntable-streams/turntable/topics"
)

func TestLaterSessionKnowsWhatAnEarlierOneSaid(t *testing.T) {
	out, errs := new(buffer), new(buffer)
	in := strings.NewReader("Please remember that my dog is Argos.\n")
	require.Zero(t, command(deadline(t), []string{"-plain", "-memory"}, in, out, errs), errs)
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

func TestMemoryKeepsEachFactOnce(t *testing.T) {
	memory, err := updater.Scripted(noted).Update(t.Context(), updater.Ended{
		Memory: "my boat is the Alba", Limit: 1000, Messages: []topics.Message{
			message("user", "Remember my boat is the Alba."), message("assistant", "remember my hat"),
			message("user", "Please remember that my dog is Argos"),
		},
	})
	require.NoError(t, err)
	require.Equal(t, "my boat is the Alba\nmy dog is Argos", memory.Text)
	require.Equal(t, "You told me: your boat is the Alba; your dog is Argos.", recall(memory.Text))
}
