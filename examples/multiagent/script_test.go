package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

func step(role, content string) think.Step {
	return think.Step{Key: "turn/1/enriched/0", Messages: []topics.Message{{Role: &role, Content: topics.Raw(content)}}}
}

func TestWorkerCalculates(t *testing.T) {
	for task, want := range map[string]string{
		`"Work out 17 * 23."`: "17 * 23 is 391", `"2+40"`: "2 + 40 is 42", `"9 - 14"`: "9 - 14 is -5",
		`"6 / 4"`: "6 / 4 is 3/2", `"Hello"`: "I only know sums.", `7`: "I only know sums.",
	} {
		r, err := work(t.Context(), step("user", task))
		require.NoError(t, err)
		require.Equal(t, want, r.Blocks[0].Text)
		require.Empty(t, r.Calls())
		require.Positive(t, r.InputTokens+r.OutputTokens)
		require.NotNil(t, r.Cost)
	}
	_, err := work(t.Context(), step("user", `"1 / 0"`))
	require.ErrorIs(t, err, errDivision)
}

func TestOrchestratorDelegatesEveryCalculation(t *testing.T) {
	r, err := orchestrate(t.Context(), step("user", `"What is 1 + 1, and 2*2?"`))
	require.NoError(t, err)
	calls := r.Calls()
	require.Len(t, calls, 2)
	require.Equal(t, `{"task":"Work out 1 + 1."}`, string(calls[0].Input))
	require.NotEqual(t, calls[0].ID, calls[1].ID)
	again, err := orchestrate(t.Context(), step("user", `"What is 1 + 1, and 2*2?"`))
	require.NoError(t, err)
	require.Equal(t, r, again, "a repeated step has the same calls")

	r, err = orchestrate(t.Context(), step("user", `"Hello"`))
	require.NoError(t, err)
	require.Empty(t, r.Calls())
}

func TestOrchestratorJoinsResults(t *testing.T) {
	for results, want := range map[string]string{
		`[{"name":"d","result":{"result":"1 + 1 is 2."},"status":"success"},` +
			`{"name":"d","result":{"error":"late","reason":"timeout"},"status":"error"}]`: "1 + 1 is 2; d failed (late).",
		`[{"name":"d","result":{"error":{"code":"x","message":"gone"}},"status":"error"}]`: "d failed (gone).",
		`7`: "the tool results cannot be read.",
	} {
		r, err := orchestrate(t.Context(), step("tool", results))
		require.NoError(t, err)
		require.Equal(t, want, r.Blocks[0].Text)
	}
}
