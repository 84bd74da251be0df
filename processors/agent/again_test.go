package agent_test

import (
	"context"
	"iter"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/turn/think"
)

// counting answers with the number of the call.
func counting() think.StreamFunc {
	var calls atomic.Int64
	return func(context.Context, think.Step) iter.Seq2[think.Delta, error] {
		return func(yield func(think.Delta, error) bool) {
			yield(think.Delta{Text: strconv.FormatInt(calls.Add(1), 10)}, nil)
		}
	}
}

func TestEveryMessageOfASessionHasAnAnswerOfItsOwn(t *testing.T) {
	a := must(agent.New("support", agent.Config{Model: counting(), Logger: zap.NewNop()}))
	start(t, a)
	for _, want := range []string{"1", "2"} {
		answer, err := a.Ask(t.Context(), "s-1", "Again?")
		require.NoError(t, err)
		require.Equal(t, want, answer)
	}
}

func TestRepeatWithAKeyGetsTheFirstAnswer(t *testing.T) {
	a := must(agent.New("support", agent.Config{Model: counting(), Logger: zap.NewNop()}))
	start(t, a)
	for _, c := range []struct{ session, key, want string }{
		{"s-1", "k-1", "1"}, {"s-1", "k-1", "1"}, {"s-1", "k-2", "2"}, {"s-2", "k-1", "3"}, {"s-1", "", "4"}, {"s-1", "", "5"}, {"s-1", "k-1", "1"},
	} {
		answer, err := a.AskOnce(t.Context(), c.session, c.key, "Again?")
		require.NoError(t, err)
		require.Equal(t, c.want, answer)
	}
}
