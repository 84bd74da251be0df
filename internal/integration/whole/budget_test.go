package whole

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

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
		w := newWorld(t, guarantee, topics.WithCosts())
		turns := func() *running {
			return w.run("turns", must(turn.Graph(w.agent, turn.Config{Budgets: turn.Budgets{User: turn.Budget{Day: limit}}})))
		}
		first := turns()
		w.run("sessions", must(cost.Graph(w.agent, cost.Config{})))
		w.run("totals", must(cost.SpendingGraph(w.agent, cost.Config{})))
		dollars := price
		w.model(w.agent, func(context.Context, think.Step) (think.Reply, error) {
			reply := think.Say("hello")
			reply.Cost = &dollars
			return reply, nil
		})
		w.followOutputs()
		say := func(session, user string) topics.Output {
			o, err := w.ask(w.ctx, session, user, "hi", "")
			require.NoError(t, err)
			return o
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

		first.stop()
		turns()
		o := say("later", "mira")
		require.NotNil(t, o.Error, "what was spent before the start counts at once")
		require.Equal(t, topics.CodeOverBudget, o.Error.Code)

		total := 0.0
		for _, r := range w.last(w.catalog.SessionCost.Name()) {
			c := w.catalog.SessionCost.Codec().Unmarshal(r).Value
			if *c.UserID == "mira" {
				total += *c.EstimatedCostUSD
			}
		}
		require.InDelta(t, spent, total, 1e-9, "the sums of the sessions")
		w.eventually(func() bool {
			all := w.last(w.catalog.Spending.Name())
			s := w.catalog.Spending.Codec().Unmarshal(all[topics.UserScope("mira")]).Value
			return s.CostUSD == spent && s.DayCostUSD == spent
		}, "the sum of the user: %v", spent)
	})
}

// last returns the last value of each key of a topic.
func (w *world) last(topic string) map[string][]byte {
	last := map[string][]byte{}
	for _, r := range w.all(topic) {
		last[string(r.Key)] = r.Value
	}
	return last
}
