package turn

import (
	"encoding/hex"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/topics"
)

// With Config.Costs each record with a cost is charged when it is first read: a response also if it is held or dead-lettered,
// because the model was paid. The row does not remember every dead-lettered record, so a repeat may be charged again: with
// the same ID, by which the groups that add up drop it.

// chargeResponse writes what a response cost its user. same is the digest of its bytes.
func (s *transition) chargeResponse(e thinkResponded, same digest, user *string) {
	if !s.rules.Costs {
		return
	}
	r := e.Response
	c := modelCharged{
		LLMCalls: 1, InputTokens: max(0, r.ThinkInputTokens), OutputTokens: max(0, r.ThinkOutputTokens), CostUSD: costOf(r),
	}
	if r.Compaction {
		c.LLMCalls++
		c.InputTokens += max(0, r.CompactionInputTokens)
		c.OutputTokens += max(0, r.CompactionOutputTokens)
	}
	s.charge(e.record, same, user, c)
}

// chargeFailure writes what a failed step cost its user. Two failures may have the same bytes, so the record counts and not
// they.
func (s *transition) chargeFailure(from *record, cost float64, user *string) {
	s.charge(from, digests.Of(ofFailure, from.Topic, from.Cause), user, modelCharged{LLMCalls: 1, CostUSD: &cost})
}

// chargeSummary writes what a summary cost.
func (s *transition) chargeSummary(e compacted) {
	if e.Result.Cost == nil {
		return
	}
	user := s.row.UserId // a late summary is of a turn that has ended or has asked the model already
	if turn := s.row.Turn; turn != nil && (user == nil || e.Result.CompactionID == compactionID(turn.Message)) {
		user = s.user(turn.Message)
	}
	s.charge(e.record, digests.Of(ofOutcome, e.Value), user, modelCharged{LLMCalls: 1, CostUSD: known(*e.Result.Cost)})
}

// charge writes what a record cost a user, nil for none. A record that was held is charged when it is read, not when it is applied.
func (s *transition) charge(from *record, same digest, user *string, c modelCharged) {
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
	s.effects = append(s.effects, emit{Key: s.key, ID: hex.EncodeToString(id[:]), Value: c})
}

// payer returns the user who pays for a model's record: that of the turn that the record answers, whose budget was checked. own
// and at say what the record answers, echo returns the input that it repeats, and response is the user that it names. The user of
// the open turn counts only for a record that may answer it.
func (s *transition) payer(own workerReply, at place, echo func() topics.Raw, response *string) *string {
	if !s.rules.Costs || s.replaying != nil {
		return nil
	}
	turn := s.accepted(own.name.turn)
	if at == stepOpen {
		turn = s.row.Turn.Message
	}
	if turn != nil {
		return first(s.user(turn), response)
	}
	var echoed, open *string
	if m, err := topics.DecodeMessage(echo()); err == nil {
		echoed = boundedID(m.UserID)
	}
	answersOther := at == stepEnded || own.name.turn != "" // no turn has that name
	if s.row.Turn != nil && !answersOther {
		open = s.user(s.row.Turn.Message)
	}
	return first(echoed, open, response, s.row.UserId)
}

// turnUser returns the user of the open turn, to whose response the worker gave a user.
func (s *session) turnUser(response *string) *string {
	if user := notBlank(s.user(s.row.Turn.Message)); user != nil {
		return user
	}
	return boundedID(notBlank(response))
}
