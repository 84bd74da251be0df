package main

import (
	"errors"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/processors/memoir/cost"
	"github.com/turntable-streams/turntable/processors/memoir/latency"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

// The variables of costs and latencies. The budget of a session is a variable of the turn.
const (
	sessionCosts    = "SESSION_COSTS"
	tenantSeparator = "TENANT_SEPARATOR"
	toolLatencies   = "TOOL_LATENCIES"
)

// budgetVariables returns where each variable of a budget is read to.
func budgetVariables(b *turn.Budgets) map[string]*float64 {
	return map[string]*float64{
		"BUDGET_PRICE_PER_USER": &b.User.Total, "BUDGET_PRICE_PER_USER_DAY": &b.User.Day,
		"BUDGET_PRICE_PER_USER_MONTH": &b.User.Month, "BUDGET_PRICE_PER_TENANT": &b.Tenant.Total,
		"BUDGET_PRICE_PER_TENANT_DAY": &b.Tenant.Day, "BUDGET_PRICE_PER_TENANT_MONTH": &b.Tenant.Month,
	}
}

// readSpending reads the variables of costs. A budget needs the costs, so it enables them.
func readSpending() (addition, error) {
	on, err := flagged(sessionCosts)
	errs := []error{err}
	var budgets turn.Budgets
	for name, to := range budgetVariables(&budgets) {
		errs = append(errs, dollars(name, to))
	}
	if err := errors.Join(errs...); err != nil {
		return addition{}, err
	}
	separator := variable(tenantSeparator)
	switch {
	case budgets.Tenant != (turn.Budget{}) && separator == "":
		return addition{}, errors.New("BUDGET_PRICE_PER_TENANT requires " + tenantSeparator + ": without it no user has a tenant")
	case !on && budgets == (turn.Budgets{}):
		return addition{}, nil
	}
	return addition{
		name: "costs", topics: []topics.CatalogOption{topics.WithCosts()},
		groups: []group{
			{"session-costs", func(agent string) (*goka.GroupGraph, error) { return cost.Graph(agent, cost.Config{}) }},
			{"spending", func(agent string) (*goka.GroupGraph, error) { return cost.SpendingGraph(agent, cost.Config{}) }},
		},
		turn: func(c *turn.Config) {
			c.Costs, c.Budgets = true, budgets
			if separator != "" {
				c.Tenants = turn.TenantBefore(separator)
			}
		},
	}, nil
}

// readLatencies reads whether the latencies of tools are aggregated.
func readLatencies() (addition, error) {
	on, err := flagged(toolLatencies)
	if err != nil || !on {
		return addition{}, err
	}
	return addition{
		name: "latencies", turn: func(c *turn.Config) { c.Latencies = true }, topics: []topics.CatalogOption{topics.WithLatencies()},
		groups: []group{{"latencies", func(agent string) (*goka.GroupGraph, error) { return latency.Graph(agent, latency.Config{}) }}},
	}, nil
}
