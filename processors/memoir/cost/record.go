package cost

import (
	"encoding/hex"
	"math"
	"time"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// record is a record of model-costs or scope-costs.
type record struct {
	*machine.Record
	Cost topics.ModelCost
}

// The reasons of dead letters, in their error.reason header.
const (
	reasonTombstone = "cost: tombstone"
	reasonSession   = "cost: its session_id is not its key"
	reasonScope     = "cost: its scope is not its key"
	reasonNegative  = "cost: a number is negative"
	reasonTooMuch   = "cost: it costs more than a call can"
	reasonLongID    = "cost: its user or tenant is too long"
	reasonBroken    = "cost: the row cannot be decoded"
)

const (
	// maxCost is what one record may cost, in dollars. More is a mistake of a price list, and would use up a budget.
	maxCost = 1e6
	// maxID is the length of IDs of users and tenants in bytes. The turn rejects messages with longer ones.
	maxID = 1 << 10
)

// reject returns why a record cannot be added, or "".
func reject(r *record) string {
	m, cost := r.Cost, 0.0
	if m.CostUSD != nil {
		cost = *m.CostUSD
	}
	switch {
	case r.Tombstone():
		return reasonTombstone
	case m.LLMCalls < 0 || m.InputTokens < 0 || m.OutputTokens < 0 || cost < 0 || math.IsNaN(cost):
		return reasonNegative
	case cost > maxCost:
		return reasonTooMuch
	case len(text(m.UserID)) > maxID || len(text(m.TenantID)) > maxID:
		return reasonLongID
	default:
		return ""
	}
}

// when returns the time of a record. A time after now would make a later day the newest one, and no budget of a day would be
// checked until then. A record without a time has the time at which it is added.
func when(m topics.ModelCost, now time.Time) time.Time {
	if at := time.UnixMilli(m.AtMS).UTC(); m.AtMS > 0 && at.Before(now) {
		return at
	}
	return now.UTC()
}

// derive returns the ID of a record that is written because of another.
func derive(domain, cause, key string) string {
	d := digests.Of("cost", domain, cause, key)
	return hex.EncodeToString(d[:])
}

// add adds two counts of at least 0. It returns the largest int64 if the sum is larger.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// int32Of returns n, or the largest int32 if n is larger: readers of FlightDeck have 32 bits for it.
func int32Of(n int64) int64 { return min(n, math.MaxInt32) }

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
