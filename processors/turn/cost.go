package turn

import (
	"fmt"
	"math"
	"strings"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/topics"
)

// A turn asks the model at most Config.MaxSteps times, and only while its session has cost less than Config.MaxCost, and its user
// and tenant less than Config.Budgets. All are checked before a step opens, and before the tools of a response are called: their
// results would be read by no step.

// mayAsk reports whether the open turn may open another step. If it may not, the failure says why.
func (s *session) mayAsk() (f failure, ok bool) {
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

// spend adds the cost of a record that was accepted to what the session has spent, which its limit is compared with. It is called
// before the cost that the record reports for the session is stored. Workers may report anything for the session: what they
// report counts while it is more than what was spent, and never lowers it.
func (s *transition) spend(cost *float64) {
	if s.rules.Costs || s.rules.MaxCost > 0 {
		s.row.Spent = addCost(s.costSoFar(), cost)
	}
}

// costSoFar returns the cost of the session that its limit is compared with; nil if it is not known.
func (s *session) costSoFar() *float64 { return larger(s.row.Spent, s.row.Cost) }

// callCost returns what a response adds to the costs that the limit of the session is compared with; nil if it is not known. In a
// response that reports only the cost of the session, that is the difference to the one before. Some model workers of FlightDeck
// report the cost of a call as that of the session: with Config.Costs the larger of both counts.
func (s *session) callCost(r topics.ThinkResponse) *float64 {
	if r.ThinkCost != nil || r.TotalSessionCost == nil || r.PreviousSessionCost != nil {
		return costOf(r)
	}
	added := *r.TotalSessionCost
	if s.row.Cost != nil {
		added -= *s.row.Cost
	}
	if !s.rules.Costs {
		return known(added)
	}
	return larger(&added, costOf(r))
}

// costOf returns the cost of a response; nil if it is not known. Older workers write only the costs of the session, or that of
// the call in place of the session's.
func costOf(r topics.ThinkResponse) *float64 {
	switch {
	case r.ThinkCost != nil:
		if cost := known(*r.ThinkCost); cost != nil {
			return addCost(cost, &r.CompactionCost)
		}
		return nil
	case r.TotalSessionCost == nil:
		return nil
	case r.PreviousSessionCost == nil:
		return known(*r.TotalSessionCost)
	default:
		return known(*r.TotalSessionCost - *r.PreviousSessionCost)
	}
}

// addCost returns a cost and the one that is added to it, at most the largest finite number. What is not a cost adds nothing.
func addCost(to, cost *float64) *float64 {
	if cost == nil || known(*cost) == nil {
		return to
	}
	total := *cost
	if to != nil {
		total = min(*to+*cost, math.MaxFloat64)
	}
	return &total
}

// larger returns the larger of two costs. What is not a cost does not count.
func larger(a, b *float64) *float64 {
	var most *float64
	for _, cost := range []*float64{a, b} {
		if cost != nil && known(*cost) != nil && (most == nil || *cost > *most) {
			most = cost
		}
	}
	return most
}

// known returns a cost, or nil if it is not a finite number from 0.
func known(cost float64) *float64 {
	if !(cost >= 0 && cost <= math.MaxFloat64) { // NaN too
		return nil
	}
	return &cost
}

// The spending of users and tenants is in a table of another group, which the turn looks up. That table is stale by some
// milliseconds, or for as long as that group does not run. This is harmless: a budget is a limit on what is spent over a day or
// more, and calls that are under way are in no table either. A turn that was allowed one call more ends at its next step. A
// processor starts only when it has read the table once.
//
// After a crash an event can be applied again with a newer table, and then end a turn whose step was written before. The
// turn still has one output, and the response to the step is dead-lettered.

// overBudget reports whether the user of the open turn, or the user's tenant, has reached a budget, and which.
func (s *session) overBudget() (text string, over bool) {
	user := s.user(s.row.Turn.Message)
	if !s.rules.hasBudgets() || s.spendings == nil || blank(user) {
		return "", false
	}
	if text, over = s.reached("user "+*user, topics.UserScope(*user), s.rules.Budgets.User); over || s.rules.Tenants == nil {
		return text, over
	}
	tenant := s.rules.Tenants(*user)
	if tenant == "" {
		return "", false
	}
	return s.reached("tenant "+tenant, topics.TenantScope(tenant), s.rules.Budgets.Tenant)
}

// reached reports whether a scope, whose owner is named in the text, has reached a limit of its budget.
func (s *session) reached(owner, scope string, limit Budget) (text string, over bool) {
	if limit == (Budget{}) {
		return "", false
	}
	spent, ok := s.spendings.of(scope)
	if !ok {
		return fmt.Sprintf("the spending of %s cannot be read", owner), true
	}
	now := s.now.UTC()
	if spent.Day != now.Format("2006-01-02") {
		spent.DayCostUSD = 0
	}
	if spent.Month != now.Format("2006-01") {
		spent.MonthCostUSD = 0
	}
	for _, l := range []struct {
		spent, limit float64
		of           string
	}{
		{spent.DayCostUSD, limit.Day, " today"},
		{spent.MonthCostUSD, limit.Month, " this month"},
		{spent.CostUSD, limit.Total, ""},
	} {
		if l.limit > 0 && l.spent >= l.limit {
			return fmt.Sprintf("%s has spent %.6g%s, the limit is %.6g", owner, l.spent, l.of, l.limit), true
		}
	}
	return "", false
}

// tableLookup looks up rows of other groups' tables. *processors.Context implements it.
type tableLookup interface {
	Lookup(table goka.Table, key string) (row any)
}

// lookedUp are the spendings in the table of the topic.
type lookedUp struct {
	from  tableLookup
	table goka.Table
}

func (l lookedUp) of(scope string) (spent topics.Spending, ok bool) {
	switch row := l.from.Lookup(l.table, scope).(type) {
	case nil:
		return topics.Spending{}, true
	case codec.Decoded[topics.Spending]:
		return row.Value, row.Err == nil
	default:
		return topics.Spending{}, false
	}
}

// TenantBefore returns a function for Config.Tenants: the tenant of a user is the part of the user's ID before the first sep. A
// user whose ID does not contain sep has none.
func TenantBefore(sep string) func(user string) string {
	return func(user string) string {
		tenant, _, found := strings.Cut(user, sep)
		if !found {
			return ""
		}
		return tenant
	}
}
