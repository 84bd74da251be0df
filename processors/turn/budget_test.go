package turn

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

func TestToolsOfTheLastStepAreNotCalled(t *testing.T) {
	p := newPlay(t, func(r *Rules) { r.MaxSteps = 2 })
	asked := p.ask("Which berth is free?")
	es := p.respond(asked, calling("tu-1"))
	require.Len(t, emitted[Called](es), 1)
	asked = the[Enriched](t, p.result("tu-1", "N4"))

	es = p.respond(asked, calling("tu-2"))

	require.Empty(t, emitted[Called](es))
	out := the[Answered](t, es)
	require.Equal(t, topics.CodeTooManySteps, out.Error.Code)
	require.Contains(t, out.Error.Message, "2 steps")
	require.Equal(t, 0.5, *out.Cost)
	require.Nil(t, p.state().Turn)
	require.Empty(t, p.state().History, "the history stays as it was before the turn")
	the[Enriched](t, p.send("message-input", message("And now?"))) // the limit is that of a turn
}

func TestAnAnswerInTheLastStepCounts(t *testing.T) {
	p := newPlay(t, func(r *Rules) { r.MaxSteps = 1 })
	require.Nil(t, the[Answered](t, p.respond(p.ask("Hi"), saying("Hello"))).Error)
}

func TestATurnMayAskTheModelAHundredTimes(t *testing.T) {
	p := newPlay(t)
	asked := p.ask("Which berths are free?")
	for step := 1; step < 100; step++ {
		id := strconv.Itoa(step)
		p.respond(asked, calling(id))
		asked = the[Enriched](t, p.result(id, "N4"))
	}
	require.Equal(t, topics.CodeTooManySteps, the[Answered](t, p.respond(asked, calling("100"))).Error.Code)
}

func TestASessionOverItsBudgetAsksTheModelNoMore(t *testing.T) {
	p := newPlay(t, func(r *Rules) { r.MaxCost = 0.5 }) // what response says
	es := p.respond(p.ask("Which berth is free?"), calling("tu-1"))
	require.Empty(t, emitted[Called](es), "no step would read their results")
	require.Equal(t, topics.CodeOverBudget, the[Answered](t, es).Error.Code)

	es = p.send("message-input", message("And now?"))
	require.Empty(t, emitted[Enriched](es))
	require.Equal(t, topics.CodeOverBudget, the[Answered](t, es).Error.Code)

	p.tombstone("think-request-response") // clears the cost
	the[Enriched](t, p.send("message-input", message("And then?")))
}

func TestAnAnswerThatReachesTheBudgetIsDelivered(t *testing.T) {
	p := newPlay(t, func(r *Rules) { r.MaxCost = 0.5 })
	require.Nil(t, the[Answered](t, p.respond(p.ask("Hi"), saying("Hello"))).Error)
}

func TestASessionWithoutACostHasNoBudgetToExceed(t *testing.T) {
	p := newPlay(t, func(r *Rules) { r.MaxCost = 0.01 })
	asked := p.ask("Hi")
	p.send("think-request-response", `{"previous_messages":[],"last_input_message":`+string(asked.LatestInput)+`,`+saying("Hello")+`}`)
	the[Enriched](t, p.send("message-input", message("And now?")))
}

func TestResultsAfterALoweredStepLimitEndTheTurn(t *testing.T) {
	p := newPlay(t)
	p.respond(p.ask("Which berth is free?"), calling("tu-1"))
	asked := the[Enriched](t, p.result("tu-1", "N4"))
	p.respond(asked, calling("tu-2"))
	p.rules.MaxSteps = 1
	p.restart()

	es := p.result("tu-2", "N5")

	require.Equal(t, topics.CodeTooManySteps, the[Answered](t, es).Error.Code)
	require.Len(t, the[Completed](t, es).Results, 1, "every call has its result")
	require.Nil(t, p.state().Turn)
}
