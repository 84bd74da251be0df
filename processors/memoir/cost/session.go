package cost

import (
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/rows/costrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// sessionOutcome is what a record, or a deadline, changes in the row of a session.
type sessionOutcome = machine.Outcome[*costrow.SessionTotals]

// applySession adds a record of model-costs to the row of its session, nil if it has none. A nil record is the row's deadline.
// It does not modify row.
func applySession(
	row *costrow.SessionTotals, session string, r *record, now time.Time, catalog topics.Catalog, config *Config,
) sessionOutcome {
	if r == nil {
		next := forgetSession(row, now, config)
		return sessionOutcome{Changed: next != nil, Row: next}
	}
	var es machine.Effects
	m, reason := r.Cost, reject(r)
	if reason == "" && m.SessionID != nil && *m.SessionID != session {
		reason = reasonSession
	}
	switch {
	case reason != "":
		es.DeadLetter(reason)
		return sessionOutcome{Effects: es.List()}
	case config.window().Has(row.GetSeen(), r.ID, now):
		return sessionOutcome{}
	}
	next := &costrow.SessionTotals{}
	if row != nil {
		next = proto.CloneOf(row)
	}
	at := when(m, now)
	next.Version = costrow.Version
	next.LlmCalls = add(next.LlmCalls, m.LLMCalls)
	next.InputTokens = add(next.InputTokens, m.InputTokens)
	next.OutputTokens = add(next.OutputTokens, m.OutputTokens)
	if m.CostUSD != nil {
		next.Cost = plus(next.Cost, *m.CostUSD)
	}
	if text(m.UserID) != "" {
		next.UserId = m.UserID
	}
	next.AtMs = max(next.AtMs, at.UnixMilli())
	next.Seen, next.AddedMs = config.window().Add(next.Seen, r.ID, now), now.UnixMilli()
	if next.DeadlineMs == 0 {
		next.DeadlineMs = config.forgetAt(now)
	}
	machine.Emit(&es, catalog.SessionCost, session, derive("session", r.ID, session), sessionRecord(next, session))
	m.SessionID, m.AtMS = &session, at.UnixMilli()
	for _, scope := range scopesOf(m) {
		m.Scope = scope
		machine.Emit(&es, catalog.ScopeCosts, scope, derive("scope", r.ID, scope), m)
	}
	return sessionOutcome{Changed: true, Row: next, Effects: es.List()}
}

// sessionRecord returns the record of session-cost that says what a row says.
func sessionRecord(s *costrow.SessionTotals, session string) topics.SessionCost {
	at := topics.Timestamp(time.UnixMilli(s.AtMs))
	c := topics.SessionCost{
		SessionID: &session, UserID: s.UserId, LLMCalls: int32Of(s.LlmCalls), TotalInputTokens: int32Of(s.InputTokens),
		TotalOutputTokens: int32Of(s.OutputTokens), Timestamp: &at,
	}
	if s.Cost != nil {
		dollars := amountFrom(s.Cost).Dollars()
		c.EstimatedCostUSD = &dollars
	}
	return c
}

func scopesOf(m topics.ModelCost) (scopes []string) {
	if user := text(m.UserID); user != "" {
		scopes = append(scopes, topics.UserScope(user))
	}
	if tenant := text(m.TenantID); tenant != "" {
		scopes = append(scopes, topics.TenantScope(tenant))
	}
	return scopes
}

// plus adds dollars, which reject has checked, to the amount in a field of a row.
func plus(field []byte, dollars float64) []byte {
	amount, err := AmountOf(dollars)
	if err != nil {
		return field
	}
	return append([]byte{}, amountFrom(field).Add(amount).bytes()...) // not nil: an amount of 0 is not an absent one
}

// forgetAt is the deadline of a row to which a record is added now. It is set once, not with each record: if records were
// added after it was set, the deadline moves when it comes.
func (c *Config) forgetAt(added time.Time) int64 {
	return added.Add(c.RememberFor + time.Second).UnixMilli()
}

// forgetSession returns the row at its deadline: without IDs if the last one is old enough.
func forgetSession(row *costrow.SessionTotals, now time.Time, config *Config) *costrow.SessionTotals {
	if row == nil {
		return nil
	}
	next := proto.CloneOf(row)
	next.Seen, next.DeadlineMs = config.forget(row.Seen, row.AddedMs, now)
	return next
}

// forget returns the IDs that are left at a deadline, and the next deadline. An ID that was added while the clock was ahead can
// outlast the last one that was added. It waits another window: an earlier deadline would be due at each tick until then.
func (c *Config) forget(seen []byte, addedMS int64, now time.Time) ([]byte, int64) {
	if seen = c.window().Prune(seen, now); seen == nil {
		return nil, 0
	}
	if next := c.forgetAt(time.UnixMilli(addedMS)); next > now.UnixMilli() {
		return seen, next
	}
	return seen, c.forgetAt(now)
}
