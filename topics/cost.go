package topics

import (
	"crypto/sha256"
	"encoding/hex"
)

// ModelCost is the value of {agent}-model-costs and of {agent}-scope-costs: what one answer of a model, or one summary of a
// compactor, cost. Its turntable.id is the same in each repeat.
type ModelCost struct {
	SessionID *string
	UserID    *string
	TenantID  *string
	// Scope is who the cost is added up for, in scope-costs: UserScope or TenantScope. It is left out when empty.
	Scope        string
	LLMCalls     int64
	InputTokens  int64
	OutputTokens int64
	CostUSD      *float64 // nil if the model has no price
	AtMS         int64    // Unix milliseconds
}

// Spending is the value of {agent}-spending: what the model calls of a user or of a tenant have cost.
type Spending struct {
	Scope        string // the key: UserScope or TenantScope
	LLMCalls     int64
	InputTokens  int64
	OutputTokens int64
	CostUSD      float64 // in all
	// Day and Month are the newest day and month with a call, in UTC: "2026-11-23" and "2026-11".
	Day          string
	DayCostUSD   float64
	Month        string
	MonthCostUSD float64
	Timestamp    *string
}

// UserScope is the Scope of a user: "user/" and the user's ID, or "user/sha256:" and the digest of an ID that cannot be a key
// of a row. Its costs must count too.
func UserScope(user string) string { return scopeOf("user/", user) }

// TenantScope is the Scope of a tenant, in the same form as UserScope: "tenant/" and the tenant's ID.
func TenantScope(tenant string) string { return scopeOf("tenant/", tenant) }

func scopeOf(kind, id string) string {
	if scope := kind + id; isKey(scope) {
		return scope
	}
	d := sha256.Sum256([]byte(id))
	return kind + "sha256:" + hex.EncodeToString(d[:])
}

var (
	modelCostWire = wire[ModelCost]{depth: MaxDepth, read: readModelCost, write: writeModelCost}
	spendingWire  = wire[Spending]{depth: MaxDepth, read: readSpending, write: writeSpending}
)

func readModelCost(c *cursor, m *ModelCost) error {
	return c.record(func(name []byte) (err error) {
		switch string(name) {
		case "session_id":
			m.SessionID, err = c.text()
		case "user_id":
			m.UserID, err = c.text()
		case "tenant_id":
			m.TenantID, err = c.text()
		case "scope":
			m.Scope, err = c.word()
		case "llm_calls":
			m.LLMCalls, err = c.integer(32)
		case "input_tokens":
			m.InputTokens, err = c.integer(64)
		case "output_tokens":
			m.OutputTokens, err = c.integer(64)
		case "cost_usd":
			m.CostUSD, err = c.double()
		case "at_ms":
			m.AtMS, err = c.integer(64)
		default:
			err = c.skip()
		}
		return err
	})
}

func writeModelCost(w *writer, m ModelCost) {
	w.open()
	w.text("session_id", m.SessionID)
	w.text("user_id", m.UserID)
	w.text("tenant_id", m.TenantID)
	w.some("scope", m.Scope)
	w.integer("llm_calls", m.LLMCalls)
	w.integer("input_tokens", m.InputTokens)
	w.integer("output_tokens", m.OutputTokens)
	w.double("cost_usd", m.CostUSD)
	w.integer("at_ms", m.AtMS)
	w.close()
}

func readSpending(c *cursor, s *Spending) error {
	amount := func(into *float64) error {
		v, err := c.double()
		if *into = 0; v != nil {
			*into = *v
		}
		return err
	}
	return c.record(func(name []byte) (err error) {
		switch string(name) {
		case "scope":
			s.Scope, err = c.word()
		case "llm_calls":
			s.LLMCalls, err = c.integer(64)
		case "input_tokens":
			s.InputTokens, err = c.integer(64)
		case "output_tokens":
			s.OutputTokens, err = c.integer(64)
		case "cost_usd":
			err = amount(&s.CostUSD)
		case "day":
			s.Day, err = c.word()
		case "day_cost_usd":
			err = amount(&s.DayCostUSD)
		case "month":
			s.Month, err = c.word()
		case "month_cost_usd":
			err = amount(&s.MonthCostUSD)
		case "timestamp":
			s.Timestamp, err = c.text()
		default:
			err = c.skip()
		}
		return err
	})
}

func writeSpending(w *writer, s Spending) {
	w.open()
	w.word("scope", s.Scope)
	w.integer("llm_calls", s.LLMCalls)
	w.integer("input_tokens", s.InputTokens)
	w.integer("output_tokens", s.OutputTokens)
	w.double("cost_usd", &s.CostUSD)
	w.word("day", s.Day)
	w.double("day_cost_usd", &s.DayCostUSD)
	w.word("month", s.Month)
	w.double("month_cost_usd", &s.MonthCostUSD)
	w.text("timestamp", s.Timestamp)
	w.close()
}
