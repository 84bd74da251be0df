package turn

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

func TestToolsOfTheLastStepAreNotCalled(t *testing.T) {
	p := newPlay(t, func(r *rules) { r.MaxSteps = 2 })
	asked := p.ask("Which berth is free?")
	es := p.respond(asked, calling("tu-1"))
	require.Len(t, emitted[called](es), 1)
	asked = the[enriched](t, p.result("tu-1", "N4"))

	es = p.respond(asked, calling("tu-2"))

	require.Empty(t, emitted[called](es))
	out := the[answered](t, es)
	require.Equal(t, topics.CodeTooManySteps, out.Error.Code)
	require.Contains(t, out.Error.Message, "2 steps")
	require.Equal(t, 0.5, *out.Cost)
	require.Nil(t, p.state().Turn)
	require.Empty(t, p.state().History, "the history stays as it was before the turn")
	the[enriched](t, p.send("message-input", message("And now?"))) // the limit is that of a turn
}

func TestAnAnswerInTheLastStepCounts(t *testing.T) {
	p := newPlay(t, func(r *rules) { r.MaxSteps = 1 })
	require.Nil(t, the[answered](t, p.respond(p.ask("Hi"), saying("Hello"))).Error)
}

func TestATurnMayAskTheModelAHundredTimes(t *testing.T) {
	p := newPlay(t)
	asked := p.ask("Which berths are free?")
	for step := 1; step < 100; step++ {
		id := strconv.Itoa(step)
		p.respond(asked, calling(id))
		asked = the[enriched](t, p.result(id, "N4"))
	}
	require.Equal(t, topics.CodeTooManySteps, the[answered](t, p.respond(asked, calling("100"))).Error.Code)
}

func TestASessionOverItsBudgetAsksTheModelNoMore(t *testing.T) {
	p := newPlay(t, func(r *rules) { r.MaxCost = 0.5 }) // what response says
	es := p.respond(p.ask("Which berth is free?"), calling("tu-1"))
	require.Empty(t, emitted[called](es), "no step would read their results")
	require.Equal(t, topics.CodeOverBudget, the[answered](t, es).Error.Code)

	es = p.send("message-input", message("And now?"))
	require.Empty(t, emitted[enriched](es))
	require.Equal(t, topics.CodeOverBudget, the[answered](t, es).Error.Code)

	p.tombstone("think-request-response") // clears the cost
	the[enriched](t, p.send("message-input", message("And then?")))
}

func TestAnAnswerThatReachesTheBudgetIsDelivered(t *testing.T) {
	p := newPlay(t, func(r *rules) { r.MaxCost = 0.5 })
	require.Nil(t, the[answered](t, p.respond(p.ask("Hi"), saying("Hello"))).Error)
}

func TestASessionWithoutACostHasNoBudgetToExceed(t *testing.T) {
	p := newPlay(t, func(r *rules) { r.MaxCost = 0.01 })
	asked := p.ask("Hi")
	p.send("think-request-response", `{"previous_messages":[],"last_input_message":`+string(asked.LatestInput)+`,`+saying("Hello")+`}`)
	the[enriched](t, p.send("message-input", message("And now?")))
}

func TestResultsAfterALoweredStepLimitEndTheTurn(t *testing.T) {
	p := newPlay(t)
	p.respond(p.ask("Which berth is free?"), calling("tu-1"))
	asked := the[enriched](t, p.result("tu-1", "N4"))
	p.respond(asked, calling("tu-2"))
	p.rules.MaxSteps = 1
	p.restart()

	es := p.result("tu-2", "N5")

	require.Equal(t, topics.CodeTooManySteps, the[answered](t, es).Error.Code)
	require.Len(t, the[completed](t, es).Results, 1, "every call has its result")
	require.Nil(t, p.state().Turn)
}

// costing is a response that ends the turn and reports these costs.
func costing(asked enriched, costs string) string {
	return `{"user_id":"mira","previous_messages":[],"last_input_message":` + string(asked.LatestInput) + `,` + costs + `,` + saying("Hello") + `}`
}

func TestReportedCostsDoNotLowerTheCostOfASession(t *testing.T) {
	for name, costs := range map[string][]string{
		"a negative total, then 2 spent": {`"total_session_cost":-100`, `"total_session_cost":-98,"previous_session_cost":-100`},
		"without the total before":       {`"total_session_cost":-100`, `"total_session_cost":-98`},
		"the cost of the step":           {`"total_session_cost":-100`, `"total_session_cost":-98,"think_cost":2`},
		"a lower total":                  {`"total_session_cost":0.75`, `"total_session_cost":0.5,"think_cost":0.5`},
		"a lower total than before":      {`"total_session_cost":0.75`, `"total_session_cost":0.5,"previous_session_cost":0.25`},
		"a total of more than its steps": {`"total_session_cost":0.75,"think_cost":0.25`, `"total_session_cost":0,"think_cost":0.25`},
		"none after a total":             {`"total_session_cost":0.75`, `"total_session_cost":null`, `"think_cost":0.25`},
		"a negative step":                {`"total_session_cost":0.75`, `"think_cost":-0.75`, `"think_cost":0.25`},
		"a negative compaction":          {`"think_cost":0.75,"compaction_cost":-0.75`, `"think_cost":0.25`},
		"a lower total that grows":       {`"total_session_cost":0.75`, `"total_session_cost":0`, `"total_session_cost":0.5`},
	} {
		for _, rule := range []string{"budget of the session", "and costs"} {
			t.Run(name+", "+rule, func(t *testing.T) {
				p := newPlay(t, func(r *rules) { r.MaxCost, r.Costs = 1, rule == "and costs" })
				for i, c := range costs {
					es := p.send("think-request-response", costing(p.ask(strconv.Itoa(i)), c))
					require.Nil(t, the[answered](t, es).Error)
				}
				es := p.send("message-input", message("and more"))
				require.Empty(t, emitted[enriched](es))
				out := the[answered](t, es)
				require.Equal(t, topics.CodeOverBudget, out.Error.Code)
				require.NotContains(t, out.Error.Message, "-")
			})
		}
	}
}

func TestOutputsHaveTheCostThatTheWorkerReports(t *testing.T) {
	p := newPlay(t, func(r *rules) { r.MaxCost = 10 })
	p.send("think-request-response", costing(p.ask("1"), `"total_session_cost":3`))
	es := p.send("think-request-response", costing(p.ask("2"), `"total_session_cost":-1`))
	require.Equal(t, -1.0, *the[answered](t, es).Cost)
	require.Equal(t, -1.0, *p.ask("3").Cost)
}

// Reported costs of a session that pays what it says are compared with its limit as they are.
func TestCostsOfACorrectWorkerAreNotCountedTwice(t *testing.T) {
	p := newPlay(t, func(r *rules) { r.MaxCost = 1 })
	p.send("think-request-response", costing(p.ask("1"), `"total_session_cost":0.25,"think_cost":0.25`))
	p.send("think-request-response", costing(p.ask("2"), `"total_session_cost":0.5,"previous_session_cost":0.25,"think_cost":0.25`))
	asked := p.ask("3")
	p.send("think-dlq", `{"latest_input":`+string(asked.LatestInput)+`}`, header(topics.HeaderCost, "0.25"))
	p.send("think-request-response", costing(p.ask("4"), `"total_session_cost":0.875,"previous_session_cost":0.75`))
	require.Equal(t, 0.875, *p.state().Cost)
	require.Equal(t, 0.875, *p.state().Spent)
	the[enriched](t, p.send("message-input", message("5")))
}

func TestSumsOfCostsAreFinite(t *testing.T) {
	p := newPlay(t, func(r *rules) { r.MaxCost = math.MaxFloat64 })
	for i := range 2 {
		asked := p.ask(strconv.Itoa(i))
		es := p.send("think-dlq", `{"latest_input":`+string(asked.LatestInput)+`}`, header(topics.HeaderCost, "1.7e308"))
		cost := the[answered](t, es).Cost
		require.NotNil(t, cost)
		require.False(t, math.IsInf(*cost, 0))
		require.False(t, math.IsInf(*p.state().Spent, 0))
	}
	es := p.send("message-input", message("and more"))
	require.Equal(t, topics.CodeOverBudget, the[answered](t, es).Error.Code)
}

func TestCostsThatAreNoAmountAddNothing(t *testing.T) {
	for _, cost := range []float64{-1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		require.Equal(t, 2.0, *addCost(new(2.0), &cost))
		require.Nil(t, addCost(nil, &cost))
	}
	require.Equal(t, math.MaxFloat64, *addCost(new(1.7e308), new(1.7e308)))
	require.Equal(t, 0.5, *addCost(nil, new(0.5)))
	require.Nil(t, addCost(nil, nil))
}

func TestCostOfASummaryIsSpentUnlessItIsNegative(t *testing.T) {
	for cost, spent := range map[string]float64{"-5": 0.5, "0.25": 0.75} {
		p := newPlay(t, func(r *rules) {
			r.MaxCost, r.HistoryLimit.Messages = 1, 2
			r.Compaction = &Compaction{Timeout: time.Minute, Keep: 1}
		})
		p.send("think-request-response", costing(p.ask("1"), `"total_session_cost":0.5`))
		p.respond(p.ask("2"), saying("x"))
		id := the[compactionRequested](t, p.send("message-input", message("3"))).CompactionID
		es := p.send("compaction-result", `{"compaction_id":"`+id+`","summary":"s","cost":`+cost+`}`)
		require.Equal(t, spent, *the[enriched](t, es).Cost)
		require.Equal(t, spent, *p.state().Spent)
	}
}
