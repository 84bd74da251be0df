package whole

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/memoir"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

// Without the group of the memories no step reaches a model: the turn ends in a timeout. When the group runs again it passes the
// step on with its deadline, so that a worker need not call the model for it, and the session continues.
func TestTurnTimesOutWhileTheGroupOfTheMemoriesIsDown(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		w := newWorld(t, guarantee, topics.WithMemoir())
		w.run("turns", must(turn.Graph(w.agent, turn.Config{Memoir: &turn.Memoir{}, ThinkTimeout: 2 * time.Second})))
		var calls atomic.Int32
		w.model(w.agent, func(context.Context, think.Step) (think.Reply, error) {
			calls.Add(1)
			return think.Say("hello"), nil
		})
		steps := make(chan processors.Inbound, 10)
		w.follow(func(r processors.Inbound) { steps <- r }, w.catalog.EnrichedMessageInput.Name())
		w.followOutputs()
		say := func(text string) topics.Output {
			o, err := w.ask(w.ctx, "s1", "mira", text, "")
			require.NoError(t, err)
			return o
		}
		out := say("one")
		require.NotNil(t, out.Error)
		require.Equal(t, topics.CodeThinkTimeout, out.Error.Code)
		require.Empty(t, steps)
		lookups := w.all(w.catalog.MemoirLookups.Name())
		require.Len(t, lookups, 1)

		w.run("memories", must(memoir.Graph(w.agent, memoir.Config{})))
		late, err := next(w.ctx, steps, "the group of the memories")
		require.NoError(t, err)
		asked, passed := map[string]string{}, map[string]string{}
		for _, h := range lookups[0].Headers {
			asked[h.Key] = string(h.Value)
		}
		for _, h := range late.Headers {
			passed[h.Name] = string(h.Value)
		}
		require.Equal(t, asked, passed)
		deadline, ok := topics.Deadline([]byte(passed[topics.HeaderDeadline]))
		require.True(t, ok)
		require.True(t, deadline.Before(time.Now()), "the turn has ended")
		out = say("two")
		require.Nil(t, out.Error)
		require.Equal(t, "hello", out.Content)
		require.EqualValues(t, 1, calls.Load(), "the step of the turn that has ended costs no call")
	})
}
