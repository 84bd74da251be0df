package main

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/turn/compact"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

func TestModelSummarizesTheTranscript(t *testing.T) {
	user, assistant, tool := "user", "assistant", "tool"
	c := compact.Conversation{Agent: orchestrator, SessionID: "s", Key: "k", Messages: []topics.Message{
		{Role: &user, Content: topics.Raw(`"What is \"1 + 1\"?"`)},
		{Role: &assistant, Content: topics.Raw(`[{"type":"tool_use","name":"delegate_task"}]`)},
		{Role: &tool, Content: topics.Raw(`[{"result":"2"}]`)},
	}}
	cost := 0.5
	s, err := askForSummary(think.Func(func(_ context.Context, s think.Step) (think.Reply, error) {
		require.Equal(t, []string{orchestrator, "s", "k"}, []string{s.Agent, s.SessionID, s.Key})
		require.Equal(t, "user: What is \"1 + 1\"?\n\nassistant: [{\"type\":\"tool_use\",\"name\":\"delegate_task\"}]\n\n"+
			"tool: [{\"result\":\"2\"}]\n\n", topics.Text(s.Input().Content))
		return think.Reply{Blocks: []think.Block{{Text: "1 + 1 is 2."}}, InputTokens: 7, OutputTokens: 3, Cost: &cost}, nil
	})).Compact(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, compact.Summary{Text: "1 + 1 is 2.", InputTokens: 7, OutputTokens: 3, Cost: &cost}, s)

	failed := errors.New("overloaded")
	_, err = askForSummary(think.Func(func(context.Context, think.Step) (think.Reply, error) {
		return think.Reply{}, failed
	})).Compact(t.Context(), c)
	require.ErrorIs(t, err, failed)
}
