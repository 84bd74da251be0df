package transcript

import (
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/fold/bridge"
	"github.com/turntable-streams/turntable/topics"
)

// A context whose fill level falls below 70 % of more than 10,000 tokens was compacted.
const (
	compactedFrom    = 10_000
	compactedPercent = 70
)

// usage sets the fill level of the context and the cost.
func (a applied) usage() []Change {
	t, before := a.t, a.t.Used
	used, known := tokens(a.get("used"))
	if known {
		t.Used = used
	}
	if size, ok := tokens(a.get("size")); ok {
		t.Size = size
	}
	if cost, present := topics.Lookup(a.update, "cost"); present {
		t.Cost = costOf(cost)
	}
	changes := []Change{t.usageOf(a.agentID)}
	if known && before > compactedFrom && 100*used < compactedPercent*before {
		changes = append(changes, Change{Event: EventCompacted, Fields: Compacted{
			AgentID: a.agentID, PreviousUsed: before, CurrentUsed: used,
			PercentDrop: int64(math.Round(100 * float64(before-used) / float64(before))),
		}})
	}
	return changes
}

// Spent sets the tokens of the session that the answer to a prompt states. They are totals of the session. nil changes nothing.
func (t *Transcript) Spent(agentID string, usage topics.Raw) []Change {
	if jsontext.Value(usage).Kind() != '{' {
		return nil
	}
	for _, member := range []struct {
		name  string
		field *int64
	}{
		{"inputTokens", &t.InputTokens},
		{"outputTokens", &t.OutputTokens},
		{"cachedReadTokens", &t.CacheReadTokens},
		{"cachedWriteTokens", &t.CacheWriteTokens},
	} {
		if n, ok := tokens(bridge.Get(usage, member.name)); ok {
			*member.field = n
		}
	}
	return []Change{t.usageOf(agentID)}
}

func (t *Transcript) usageOf(agentID string) Change {
	u := Usage{
		AgentID: agentID, InputTokens: t.InputTokens, OutputTokens: t.OutputTokens,
		CacheReadTokens: t.CacheReadTokens, CacheWriteTokens: t.CacheWriteTokens,
		Cost: t.Cost, ContextWindowUsed: t.Used, ContextWindowSize: t.Size,
	}
	if bridge.String(bridge.Get(t.Cost, "currency")) == "USD" {
		u.CostUSD = bridge.Get(t.Cost, "amount")
	}
	return Change{Event: EventUsage, Fields: u}
}

// costOf returns the cost if it is an amount in a currency, else nil.
func costOf(cost topics.Raw) []byte {
	amount, currency := bridge.Get(cost, "amount"), bridge.String(bridge.Get(cost, "currency"))
	if jsontext.Value(amount).Kind() != '0' || len(amount) > maxName || len(currency) > maxName {
		return nil
	}
	return bridge.Fields{}.Value("amount", amount).Text("currency", currency).Object()
}

// tokens reads a number of tokens.
func tokens(v topics.Raw) (n int64, ok bool) {
	if jsontext.Value(v).Kind() != '0' {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil || f < 0 || f > 1<<53 {
		return 0, false
	}
	return int64(f), true
}
