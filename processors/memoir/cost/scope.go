package cost

import (
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/rows/costrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// scopeOutcome is what a record, or a deadline, changes in the row of a scope.
type scopeOutcome = machine.Outcome[*costrow.ScopeTotals]

// applyScope adds a record of scope-costs to the row of its scope, nil if it has none. A nil record is the row's deadline. It
// does not modify row.
//
// The newest day counts, by the times of the records: a record of an earlier day is not in the sum of the day, and one of an
// earlier month is not in that of the month. All are in the total.
func applyScope(
	row *costrow.ScopeTotals, scope string, r *record, now time.Time, catalog topics.Catalog, config *Config,
) scopeOutcome {
	if r == nil {
		next := forgetScope(row, now, config)
		return scopeOutcome{Changed: next != nil, Row: next}
	}
	var es machine.Effects
	m, reason := r.Cost, reject(r)
	if reason == "" && m.Scope != scope {
		reason = reasonScope
	}
	switch {
	case reason != "":
		es.DeadLetter(reason)
		return scopeOutcome{Effects: es.List()}
	case config.window().Has(row.GetSeen(), r.ID, now):
		return scopeOutcome{}
	}
	next := &costrow.ScopeTotals{}
	if row != nil {
		next = proto.CloneOf(row)
	}
	next.Version = costrow.Version
	next.LlmCalls = add(next.LlmCalls, m.LLMCalls)
	next.InputTokens = add(next.InputTokens, m.InputTokens)
	next.OutputTokens = add(next.OutputTokens, m.OutputTokens)
	at := when(m, now)
	day, month := at.Format("2006-01-02"), at.Format("2006-01")
	if day > next.Day { // dates of this form are in the order of their texts
		next.Day, next.DayCost = day, nil
	}
	if month > next.Month {
		next.Month, next.MonthCost = month, nil
	}
	if m.CostUSD != nil {
		next.Cost = plus(next.Cost, *m.CostUSD)
		if day == next.Day {
			next.DayCost = plus(next.DayCost, *m.CostUSD)
		}
		if month == next.Month {
			next.MonthCost = plus(next.MonthCost, *m.CostUSD)
		}
	}
	next.AtMs = max(next.AtMs, at.UnixMilli())
	next.Seen, next.AddedMs = config.window().Add(next.Seen, r.ID, now), now.UnixMilli()
	if next.DeadlineMs == 0 {
		next.DeadlineMs = config.forgetAt(now)
	}
	machine.Emit(&es, catalog.Spending, scope, derive("spending", r.ID, scope), scopeRecord(next, scope))
	return scopeOutcome{Changed: true, Row: next, Effects: es.List()}
}

// scopeRecord returns the record of the topic spending that says what a row says.
func scopeRecord(s *costrow.ScopeTotals, scope string) topics.Spending {
	at := topics.Timestamp(time.UnixMilli(s.AtMs))
	return topics.Spending{
		Scope: scope, LLMCalls: s.LlmCalls, InputTokens: s.InputTokens, OutputTokens: s.OutputTokens,
		CostUSD: amountFrom(s.Cost).Dollars(), Day: s.Day, DayCostUSD: amountFrom(s.DayCost).Dollars(),
		Month: s.Month, MonthCostUSD: amountFrom(s.MonthCost).Dollars(), Timestamp: &at,
	}
}

// forgetScope returns the row at its deadline: without IDs if the last one is old enough.
func forgetScope(row *costrow.ScopeTotals, now time.Time, config *Config) *costrow.ScopeTotals {
	if row == nil {
		return nil
	}
	next := proto.CloneOf(row)
	next.Seen, next.DeadlineMs = config.forget(row.Seen, row.AddedMs, now)
	return next
}
