package turn

import (
	"fmt"

	"github.com/turntable-streams/turntable/topics"
)

// A turn asks the model at most Config.MaxSteps times, and only while its session has cost less than Config.MaxCost, and its user
// and tenant less than Config.Budgets. All are checked before a step opens, and before the tools of a response are called: their
// results would be read by no step.

// mayAsk reports whether the open turn may open another step. If it may not, the failure says why.
func (s *transition) mayAsk() (f failure, ok bool) {
	turn, cost := s.row.Turn, s.costSoFar()
	switch {
	case int64(turn.Step) >= int64(s.rules.MaxSteps):
		text := fmt.Sprintf("the model asked for tools in step %d of the turn, the limit is %d steps", turn.Step, s.rules.MaxSteps)
		return failure{topics.CodeTooManySteps, text}, false
	case s.rules.MaxCost > 0 && cost != nil && *cost >= s.rules.MaxCost:
		text := fmt.Sprintf("the session has cost %.6g, the limit is %.6g", *cost, s.rules.MaxCost)
		return failure{topics.CodeOverBudget, text}, false
	}
	if text, over := s.overBudget(); over {
		return failure{topics.CodeOverBudget, text}, false
	}
	return failure{}, true
}
