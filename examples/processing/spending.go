package main

import (
	"errors"
	"os"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/envoption"
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

var budgetVariables = []envoption.Variable[func(*turn.Budgets)]{
	budget("BUDGET_PRICE_PER_USER", func(b *turn.Budgets) *float64 { return &b.User.Total }),
	budget("BUDGET_PRICE_PER_USER_DAY", func(b *turn.Budgets) *float64 { return &b.User.Day }),
	budget("BUDGET_PRICE_PER_USER_MONTH", func(b *turn.Budgets) *float64 { return &b.User.Month }),
	budget("BUDGET_PRICE_PER_TENANT", func(b *turn.Budgets) *float64 { return &b.Tenant.Total }),
	budget("BUDGET_PRICE_PER_TENANT_DAY", func(b *turn.Budgets) *float64 { return &b.Tenant.Day }),
	budget("BUDGET_PRICE_PER_TENANT_MONTH", func(b *turn.Budgets) *float64 { return &b.Tenant.Month }),
}

func budget(name string, of func(*turn.Budgets) *float64) envoption.Variable[func(*turn.Budgets)] {
	return envoption.Variable[func(*turn.Budgets)]{Name: name, Decimal: func(dollars float64) func(*turn.Budgets) {
		return func(b *turn.Budgets) { *of(b) = dollars }
	}}
}

// readSpending reads the variables of costs. A budget needs the costs, so it enables them.
func readSpending() (addition, error) {
	on, err := flagged(sessionCosts)
	limits, wrong := envoption.Options(budgetVariables, os.LookupEnv, errVariable)
	if err := errors.Join(err, wrong); err != nil {
		return addition{}, err
	}
	var budgets turn.Budgets
	for _, limit := range limits {
		limit(&budgets)
	}
	separator := variable(tenantSeparator)
	switch {
	case budgets.Tenant != (turn.Budget{}) && separator == "":
		return addition{}, errors.New("BUDGET_PRICE_PER_TENANT requires " + tenantSeparator + ": without it no user has a tenant")
	case !on && len(limits) == 0:
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
