package whole

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
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
		agent, brokers := testbroker.Agent(), testbroker.Start(t)
		catalog, err := topics.For(agent, topics.WithMemoir())
		require.NoError(t, err)
		to, err := processors.NewPublisher(brokers)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, to.Close()) })
		run := func(graph *goka.GroupGraph, err error) {
			require.NoError(t, err)
			p, err := processors.New(brokers, graph, processors.WithTopics(catalog), processors.WithPartitions(gatePartitions),
				processors.WithInstance("one"), processors.WithGuarantee(guarantee), processors.WithTick(20*time.Millisecond))
			require.NoError(t, err)
			serve(t, p.Run)
			require.Eventually(t, func() bool { return p.Health().State == processors.Running }, waitLimit, 5*time.Millisecond)
		}
		var calls atomic.Int32
		model, err := think.New(agent, to, think.Func(func(context.Context, think.Step) (think.Reply, error) {
			calls.Add(1)
			return think.Say("hello"), nil
		}))
		require.NoError(t, err)
		outputs, steps := make(chan topics.Output, 10), make(chan processors.Inbound, 10)
		names := []string{catalog.MessageOutput.Name(), catalog.EnrichedMessageInput.Name()}
		follower, err := processors.NewFollower(brokers, names, func(r processors.Inbound) {
			if r.Topic == catalog.MessageOutput.Name() {
				outputs <- catalog.MessageOutput.Codec().Unmarshal(r.Value).Value
			} else {
				steps <- r
			}
		})
		require.NoError(t, err)
		say := func(text string) topics.Output {
			role, session, user := "user", "s1", "mira"
			m, err := processors.OutboundOf(catalog.MessageInput, session, topics.Message{
				SessionID: &session, UserID: &user, Role: &role, Content: topics.Raw(`"` + text + `"`),
			}, "")
			require.NoError(t, err)
			require.NoError(t, to.Publish(t.Context(), m))
			return next(t, outputs)
		}

		run(turn.Graph(agent, turn.WithMemoir(turn.Memoir{}), turn.WithThinkTimeout(2*time.Second)))
		serve(t, func(ctx context.Context) error { return model.Run(ctx, brokers) })
		serve(t, follower.Run)
		<-follower.Ready()
		out := say("one")
		require.NotNil(t, out.Error)
		require.Equal(t, topics.CodeThinkTimeout, out.Error.Code)
		require.Empty(t, steps)
		lookups := allOf(t.Context(), t, brokers, catalog.MemoirLookups.Name())
		require.Len(t, lookups, 1)

		run(memoir.Graph(agent))
		late := next(t, steps)
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

// next returns what comes next.
func next[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(waitLimit):
		require.FailNow(t, "nothing comes")
		panic("unreachable")
	}
}
