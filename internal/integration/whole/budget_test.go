package whole

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/memoir/cost"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

// A user spends a budget in several sessions. Then no session of that user asks the model, those of others do, and the sums on
// the topics are those of the answers. A turn processor that starts later knows what was spent before it started.
func TestBudgetOfAUserCoversAllSessions(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		const price, limit = 0.25, 1.0
		agent, brokers := testbroker.Agent(), testbroker.Start(t)
		catalog, err := topics.For(agent, topics.WithCosts())
		require.NoError(t, err)
		to, err := processors.NewPublisher(brokers)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, to.Close()) })

		turns, turnsErr := turn.Graph(agent, turn.WithBudgets(turn.Budgets{User: turn.Budget{Day: limit}}))
		sessions, sessionsErr := cost.Graph(agent)
		totals, totalsErr := cost.SpendingGraph(agent)
		require.NoError(t, errors.Join(turnsErr, sessionsErr, totalsErr))
		run := func(graph *goka.GroupGraph) (stop func()) {
			p, err := processors.New(brokers, graph, processors.WithTopics(catalog), processors.WithPartitions(gatePartitions),
				processors.WithInstance("one"), processors.WithGuarantee(guarantee), processors.WithTick(20*time.Millisecond))
			require.NoError(t, err)
			stop = serve(t, p.Run)
			require.Eventually(t, func() bool { return p.Health().State == processors.Running }, waitLimit, 5*time.Millisecond)
			return stop
		}
		stopTurns := run(turns)
		run(sessions)
		run(totals)
		dollars := price
		model, err := think.New(agent, to, think.Func(func(context.Context, think.Step) (think.Reply, error) {
			reply := think.Say("hello")
			reply.Cost = &dollars
			return reply, nil
		}))
		require.NoError(t, err)
		serve(t, func(ctx context.Context) error { return model.Run(ctx, brokers) })

		outputs := make(chan topics.Output, 100)
		follower, err := processors.NewFollower(brokers, []string{catalog.MessageOutput.Name()}, func(r processors.Inbound) {
			outputs <- catalog.MessageOutput.Codec().Unmarshal(r.Value).Value
		})
		require.NoError(t, err)
		serve(t, follower.Run)
		<-follower.Ready()
		say := func(session, user string) topics.Output {
			role := "user"
			m, err := processors.OutboundOf(catalog.MessageInput, session, topics.Message{
				SessionID: &session, UserID: &user, Role: &role, Content: topics.Raw(`"hi"`),
			}, "")
			require.NoError(t, err)
			require.NoError(t, to.Publish(t.Context(), m))
			select {
			case o := <-outputs:
				return o
			case <-time.After(waitLimit):
				require.FailNow(t, "no output")
				return topics.Output{}
			}
		}
		spent := 0.0
		for n := 0; ; n++ { // the table is some milliseconds old
			o := say("s"+strconv.Itoa(n), "mira")
			if o.Error != nil {
				require.Equal(t, topics.CodeOverBudget, o.Error.Code)
				require.GreaterOrEqual(t, n, 4, "the budget is four answers")
				break
			}
			spent += price
			require.Less(t, n, 40, "the budget is never reached")
		}
		require.Nil(t, say("t", "otto").Error)

		stopTurns()
		again, err := turn.Graph(agent, turn.WithBudgets(turn.Budgets{User: turn.Budget{Day: limit}}))
		require.NoError(t, err)
		run(again)
		o := say("later", "mira")
		require.NotNil(t, o.Error, "what was spent before the start counts at once")
		require.Equal(t, topics.CodeOverBudget, o.Error.Code)

		total := 0.0
		for _, r := range lastOf(t, brokers, catalog.SessionCost.Name()) {
			c := catalog.SessionCost.Codec().Unmarshal(r).Value
			if *c.UserID == "mira" {
				total += *c.EstimatedCostUSD
			}
		}
		require.InDelta(t, spent, total, 1e-9, "the sums of the sessions")
		require.Eventually(t, func() bool {
			all := lastOf(t, brokers, catalog.Spending.Name())
			s := catalog.Spending.Codec().Unmarshal(all[topics.UserScope("mira")]).Value
			return s.CostUSD == spent && s.DayCostUSD == spent
		}, waitLimit, 50*time.Millisecond, "the sum of the user: %v", spent)
	})
}

// lastOf returns the last value of each key of a topic.
func lastOf(t *testing.T, brokers []string, topic string) map[string][]byte {
	last := map[string][]byte{}
	for _, r := range allOf(t.Context(), t, brokers, topic) {
		last[string(r.Key)] = r.Value
	}
	return last
}

// serve runs a function until the test ends, or stop is called.
func serve(t *testing.T, f func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var group errgroup.Group
	group.Go(func() error { return f(ctx) })
	stop = func() {
		cancel()
		if err := group.Wait(); err != nil {
			t.Error(fmt.Errorf("run: %w", err))
		}
	}
	t.Cleanup(stop)
	return stop
}
