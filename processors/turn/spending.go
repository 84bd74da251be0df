package turn

import (
	"fmt"
	"strings"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/topics"
)

// The spending of users and tenants is in a table of another group, which the turn looks up. That table is stale by some
// milliseconds, or for as long as that group does not run. This is harmless: a budget is a limit on what is spent over a day or
// more, and calls that are under way are in no table either. A turn that was allowed one call more ends at its next step. A
// processor starts only when it has read the table once.
//
// After a crash an event can be applied again with a newer table, and then end a turn whose step was written before. The
// turn still has one output, and the response to the step is dead-lettered.

// spendings are the rows of the topic spending.
type spendings interface {
	// of returns the spending of a scope; the zero value if it has none. ok is false if the row cannot be read.
	of(scope string) (spent topics.Spending, ok bool)
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

// overBudget reports whether the user of the open turn, or the user's tenant, has reached a budget, and which.
func (s *transition) overBudget() (text string, over bool) {
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
func (s *transition) reached(owner, scope string, limit Budget) (text string, over bool) {
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
