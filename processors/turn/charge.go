package turn

import (
	"encoding/hex"
	"math"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/topics"
)

// With Config.Costs each record with a cost is charged when it is first read: a response also if it is held or dead-lettered,
// because the model was paid. The row does not remember every dead-lettered record, so a repeat may be charged again: with
// the same ID, by which the groups that add up drop it.

// chargeResponse writes what a response cost its user. same is the digest of its bytes.
func (s *transition) chargeResponse(e ThinkResponded, same digest, user *string) {
	if !s.rules.Costs {
		return
	}
	r := e.Response
	c := ModelCharged{
		LLMCalls: 1, InputTokens: max(0, r.ThinkInputTokens), OutputTokens: max(0, r.ThinkOutputTokens), CostUSD: costOf(r),
	}
	if r.Compaction {
		c.LLMCalls++
		c.InputTokens += max(0, r.CompactionInputTokens)
		c.OutputTokens += max(0, r.CompactionOutputTokens)
	}
	s.charge(e.Record, same, user, c)
}

// chargeFailure writes what a failed step cost its user. Two failures may have the same bytes, so the record counts and not
// they.
func (s *transition) chargeFailure(from *Record, cost float64, user *string) {
	s.charge(from, digests.Of(ofFailure, from.Topic, from.Cause), user, ModelCharged{LLMCalls: 1, CostUSD: &cost})
}

// chargeSummary writes what a summary cost.
func (s *transition) chargeSummary(e Compacted) {
	if e.Result.Cost == nil {
		return
	}
	user := s.row.UserId // a late summary is of a turn that has ended or has asked the model already
	if turn := s.row.Turn; turn != nil && (user == nil || e.Result.CompactionID == compactionID(turn.Message)) {
		user = s.user(turn.Message)
	}
	s.charge(e.Record, digests.Of(ofOutcome, e.Value), user, ModelCharged{LLMCalls: 1, CostUSD: known(*e.Result.Cost)})
}

// charge writes what a record cost a user, nil for none. A record that was held is charged when it is read, not when it is applied.
func (s *transition) charge(from *Record, same digest, user *string, c ModelCharged) {
	if !s.rules.Costs || s.replaying != nil {
		return
	}
	c.UserID = boundedID(notBlank(user))
	if s.rules.Tenants != nil && c.UserID != nil {
		tenant := s.rules.Tenants(*c.UserID)
		c.TenantID = boundedID(notBlank(&tenant))
	}
	c.SessionID = &s.key
	if c.AtMS = from.At.UnixMilli(); c.AtMS < 0 { // the record has no timestamp
		c.AtMS = s.nowMS()
	}
	id := digests.Of(ofCost, s.key, string(same[:]))
	s.effects = append(s.effects, Emit{Key: s.key, ID: hex.EncodeToString(id[:]), Value: c})
}

// spend adds the cost of a record that was accepted to what the session has spent, which its limit is compared with. It is called
// before the cost that the record reports for the session is stored. Workers may report anything for the session: what they
// report counts while it is more than what was spent, and never lowers it.
func (s *transition) spend(cost *float64) {
	if s.rules.Costs || s.rules.MaxCost > 0 {
		s.row.Spent = addCost(s.costSoFar(), cost)
	}
}

// costSoFar returns the cost of the session that its limit is compared with; nil if it is not known.
func (s *transition) costSoFar() *float64 { return larger(s.row.Spent, s.row.Cost) }

// callCost returns what a response adds to the costs that the limit of the session is compared with; nil if it is not known. In a
// response that reports only the cost of the session, that is the difference to the one before. Some model workers of FlightDeck
// report the cost of a call as that of the session: with Config.Costs the larger of both counts.
func (s *transition) callCost(r topics.ThinkResponse) *float64 {
	if r.ThinkCost != nil || r.TotalSessionCost == nil || r.PreviousSessionCost != nil {
		return costOf(r)
	}
	added := *r.TotalSessionCost
	if s.row.Cost != nil {
		added -= *s.row.Cost
	}
	if !s.rules.Costs {
		return known(added)
	}
	return larger(&added, costOf(r))
}

// costOf returns the cost of a response; nil if it is not known. Older workers write only the costs of the session, or that of
// the call in place of the session's.
func costOf(r topics.ThinkResponse) *float64 {
	switch {
	case r.ThinkCost != nil:
		if cost := known(*r.ThinkCost); cost != nil {
			return addCost(cost, &r.CompactionCost)
		}
		return nil
	case r.TotalSessionCost == nil:
		return nil
	case r.PreviousSessionCost == nil:
		return known(*r.TotalSessionCost)
	default:
		return known(*r.TotalSessionCost - *r.PreviousSessionCost)
	}
}

// addCost returns a cost and the one that is added to it, at most the largest finite number. What is not a cost adds nothing.
func addCost(to, cost *float64) *float64 {
	if cost == nil || known(*cost) == nil {
		return to
	}
	total := *cost
	if to != nil {
		total = min(*to+*cost, math.MaxFloat64)
	}
	return &total
}

// larger returns the larger of two costs. What is not a cost does not count.
func larger(a, b *float64) *float64 {
	var most *float64
	for _, cost := range []*float64{a, b} {
		if cost != nil && known(*cost) != nil && (most == nil || *cost > *most) {
			most = cost
		}
	}
	return most
}

// known returns a cost, or nil if it is not a finite number from 0.
func known(cost float64) *float64 {
	if !(cost >= 0 && cost <= math.MaxFloat64) { // NaN too
		return nil
	}
	return &cost
}
