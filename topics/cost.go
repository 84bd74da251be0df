package topics

import (
	"crypto/sha256"
	"encoding/hex"
)

// ModelCost is the value of {agent}-model-costs and of {agent}-scope-costs: what one answer of a model, or one summary of a
// compactor, cost. Its turntable.id is the same in each repeat.
type ModelCost struct {
	SessionID *string `json:"session_id"`
	UserID    *string `json:"user_id"`
	TenantID  *string `json:"tenant_id"`
	// Scope is who the cost is added up for, in scope-costs: UserScope or TenantScope. It is left out when empty.
	Scope        string   `json:"scope,omitzero"`
	LLMCalls     int64    `json:"llm_calls" as:"int32"`
	InputTokens  int64    `json:"input_tokens"`
	OutputTokens int64    `json:"output_tokens"`
	CostUSD      *float64 `json:"cost_usd"` // nil if the model has no price
	AtMS         int64    `json:"at_ms"`    // Unix milliseconds
}

// Spending is the value of {agent}-spending: what the model calls of a user or of a tenant have cost.
type Spending struct {
	Scope        string  `json:"scope"` // the key: UserScope or TenantScope
	LLMCalls     int64   `json:"llm_calls"`
	InputTokens  int64   `json:"input_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	CostUSD      float64 `json:"cost_usd"` // in all
	// Day and Month are the newest day and month with a call, in UTC: "2026-11-23" and "2026-11".
	Day          string  `json:"day"`
	DayCostUSD   float64 `json:"day_cost_usd"`
	Month        string  `json:"month"`
	MonthCostUSD float64 `json:"month_cost_usd"`
	Timestamp    *string `json:"timestamp"`
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
	modelCostWire = tagged[ModelCost](nil)
	spendingWire  = tagged[Spending](nil)
)
