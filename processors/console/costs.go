package console

import (
	"net/http"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/processors/memoir/latency"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

// costPage is what users and tenants have spent, and how long tools take.
type costPage struct {
	On       bool
	List     listing[spendingLine]
	Prefix   string
	Tools    []toolLine
	AllTools bool
	ToolsOn  bool
	NoTools  int
}

// spendingLine is what a user or a tenant has spent.
type spendingLine struct {
	topics.Spending
	Kind, Name string
	Today      float64 // 0 if the newest day is another one
	ThisMonth  float64
	Budget     turn.Budget
	Reached    string // which budget is reached
}

// toolLine is how long the calls of a tool take.
type toolLine struct {
	Tool               string
	Calls, Errors      uint64
	Half, Most, Rarely time.Duration // quantiles of 0.5, 0.95 and 0.99
	Longest            time.Duration
	Last               int64
}

func costs(r *request) {
	if !r.everything() {
		r.fail(http.StatusForbidden, "This page is about all users: you may use some sessions only.")
		return
	}
	f := r.console.follower
	b := costPage{On: f.money != nil, Prefix: r.first("scope")}
	l := listing[spendingLine]{Page: "/costs", Noun: "spender", Empty: "Nothing was spent", Parameters: []any{"scope", b.Prefix}}
	if b.Prefix != "" {
		l.First, l.Total = 1, -1
		l.Items = r.spendersOf(f.index, topics.UserScope(b.Prefix), topics.TenantScope(b.Prefix))
	} else {
		l = listed(r, l, pageSize, nil, entries[*topics.Spending, spendingLine]{
			of: &f.index.spending.byCost,
			place: func(_ int64, scope string) *topics.Spending {
				if s := f.index.spending.byScope[scope]; s != nil {
					return s
				}
				return &topics.Spending{Scope: scope}
			},
			cursor: func(s *topics.Spending) (int64, string) { return 0, s.Scope },
			see:    func(s *topics.Spending) (spendingLine, string, bool) { return r.spendingOf(s), anySession(), true },
		})
	}
	b.List = l
	if t := f.latencies.Load(); t != nil {
		var all []latency.Aggregate
		all, b.AllTools = t.All()
		b.ToolsOn, b.NoTools = true, max(0, len(all)-pageSize)
		for _, a := range all[:min(len(all), pageSize)] {
			line := toolLine{Tool: a.Tool, Calls: a.Count, Errors: a.Errors, Longest: a.Longest, Last: a.Last.UnixMilli()}
			line.Half, _ = a.Quantile(0.5)
			line.Most, _ = a.Quantile(0.95)
			line.Rarely, _ = a.Quantile(0.99)
			b.Tools = append(b.Tools, line)
		}
	}
	r.show(http.StatusOK, "costs", page{Title: "Costs", Section: "/costs", About: aboutCosts, Body: b})
}

func (r *request) spendersOf(x *index, scopes ...string) (list []spendingLine) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, scope := range scopes {
		if s := x.spending.byScope[scope]; s != nil {
			list = append(list, r.spendingOf(s))
		}
	}
	return list
}

// spendingOf returns the line of a scope, with its budget.
func (r *request) spendingOf(s *topics.Spending) spendingLine {
	l := spendingLine{Spending: *s, Kind: "tenant", Name: strings.TrimPrefix(s.Scope, topics.TenantScope("")), Budget: r.console.config.Budgets.Tenant}
	if name, ok := strings.CutPrefix(s.Scope, topics.UserScope("")); ok {
		l.Kind, l.Name, l.Budget = "user", name, r.console.config.Budgets.User
	}
	today := r.now.UTC().Format(time.DateOnly)
	if s.Day == today {
		l.Today = s.DayCostUSD
	}
	if s.Month == today[:7] {
		l.ThisMonth = s.MonthCostUSD
	}
	switch over := func(spent, budget float64) bool { return budget > 0 && spent >= budget }; {
	case over(s.CostUSD, l.Budget.Total):
		l.Reached = "in total"
	case over(l.ThisMonth, l.Budget.Month):
		l.Reached = "of the month"
	case over(l.Today, l.Budget.Day):
		l.Reached = "of the day"
	}
	return l
}
