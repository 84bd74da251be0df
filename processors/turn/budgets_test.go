package turn_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

// The spending comes from the topic that the groups of costs write.
func TestSpendingOnItsTopicEndsTheNextTurn(t *testing.T) {
	b := start(t, turn.Config{Budgets: turn.Budgets{User: turn.Budget{Total: 1}}})
	charges := processortest.Out(b.Driver, b.topics.ModelCosts)
	spending := processortest.In(b.Driver, b.topics.Spending)
	m := say("s1", "one")
	m.UserID = new("mira")
	b.messages.Pipe("s1", m)
	b.responses.Pipe("s1", saying(b.enriched.Next().Value, "hello"))
	require.Nil(t, b.answers.Next().Value.Error)
	require.Equal(t, "mira", *charges.Next().Value.UserID)

	spending.Pipe(topics.UserScope("mira"), topics.Spending{Scope: topics.UserScope("mira"), CostUSD: 2})
	b.messages.Pipe("s1", m)
	require.Equal(t, topics.CodeOverBudget, b.answers.Next().Value.Error.Code)
	require.Empty(t, b.enriched.Drain())
}
