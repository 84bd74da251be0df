package fold

import (
	"math"
	"strconv"

	"github.com/turntable-streams/turntable/internal/rows/foldrow"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// stopPaused is the stop reason of a run that waits for a decision. Such a run is not an answer.
const stopPaused = `"paused"`

// answer emits what the turn processor continues with: a think-response, or a think failure.
func (s *transition) answer(t *foldrow.Turn, b topics.BatchMessage) {
	request := s.request(t)
	switch {
	case b.State == topics.BatchComplete && string(b.StopReason) == stopPaused:
		return
	case b.State == topics.BatchComplete:
		r := s.thinkResponse(b, request)
		if s.thinkSize(r) <= s.config.RecordLimit {
			think(s, t, s.topics.ThinkRequestResponse, r)
			return
		}
		reason := topics.ReasonTooLarge
		b.Reason = &reason
	}
	// The turn processor assigns a failure without an input to the step that is open when it reads it. That can be the step
	// of the next message, if the step of this turn was cancelled or timed out. Therefore a failure without an input is not
	// written. If the step of this turn is still open, its think timeout ends it.
	if _, err := topics.DecodeMessage(request.LatestInput); err == nil {
		think(s, t, s.topics.ThinkDLQ, topics.ThinkFailure{LatestInput: request.LatestInput, Reason: b.Reason})
	}
}

func think[T any](s *transition, t *foldrow.Turn, to topics.Topic[T], v T) {
	machine.Emit(&s.Effects, to, s.key, recordID(s.key, t.Id, "think"), v)
}

// request returns the enriched message that the turn answers; empty if it is unknown.
func (s *transition) request(t *foldrow.Turn) (m topics.EnrichedMessage) {
	if t.Request == 0 {
		return m
	}
	raw, _ := s.read(t.Request)
	m.History, _ = topics.Lookup(raw, "history")
	m.LatestInput, _ = topics.Lookup(raw, "latest_input")
	if user, _ := topics.Lookup(raw, "user_id"); user != nil {
		m.UserID = topics.TextOf(user)
	}
	m.Cost = amount(raw, "cost")
	return m
}

// withoutHistory reduces an enriched message to the members that request reads, except the history.
func withoutHistory(enriched topics.Raw) topics.Raw {
	short := []byte{'{'}
	for _, name := range []string{"latest_input", "user_id", "cost"} {
		if v, ok := topics.Lookup(enriched, name); ok {
			if len(short) > 1 {
				short = append(short, ',')
			}
			short = append(append(append(short, '"'), name...), `":`...)
			short = append(short, v...)
		}
	}
	return append(short, '}')
}

// amount returns a member of an object as a number; nil if it is not one.
func amount(object topics.Raw, name string) *float64 {
	v, _ := topics.Lookup(object, name)
	if n, err := strconv.ParseFloat(string(v), 64); err == nil && !math.IsInf(n, 0) {
		return &n
	}
	return nil
}

// thinkResponse returns the answer of a turn, with the assistant's text. Tool calls that the agent ran itself are left
// out: the turn processor must not run them again, and model providers reject a conversation with a call that has no
// result.
func (s *transition) thinkResponse(b topics.BatchMessage, m topics.EnrichedMessage) topics.ThinkResponse {
	now := topics.Timestamp(s.now)
	r := topics.ThinkResponse{
		SessionID: &s.key, UserID: m.UserID, PreviousSessionCost: m.Cost,
		PreviousMessages: m.History, LastInputMessage: m.LatestInput, LastInputResponse: topics.Raw("[]"),
		EndTurn: true, Timestamp: &now,
	}
	r.ThinkCost = amount(b.Usage, "cost")
	r.ThinkInputTokens, r.ThinkOutputTokens = tokens(b.Usage, "input"), tokens(b.Usage, "output")
	total := 0.0
	for _, cost := range []*float64{r.PreviousSessionCost, r.ThinkCost} {
		if cost != nil {
			total += *cost
		}
	}
	r.TotalSessionCost = &total
	if text := textBlocks(b.Messages); text != nil {
		role := "assistant"
		r.LastInputResponse = folder.AppendMessages(nil, []topics.Raw{topics.Raw(topics.EncodeMessage(topics.Message{
			SessionID: &s.key, UserID: m.UserID, Role: &role, Content: text, Timestamp: &now,
		}))})
	}
	return r
}

// textBlocks returns the assistant's texts as content blocks; nil if there are none.
func textBlocks(messages topics.Raw) topics.Raw {
	elements, _ := topics.Elements(messages)
	var blocks []topics.Raw
	for _, m := range elements {
		role, _ := topics.Lookup(m, "role")
		text, _ := topics.Lookup(m, "content")
		if string(role) != `"assistant"` || len(text) <= len(`""`) || text[0] != '"' {
			continue
		}
		block := append([]byte(`{"type":"text","text":`), text...)
		blocks = append(blocks, append(block, '}'))
	}
	if blocks == nil {
		return nil
	}
	return folder.AppendMessages(nil, blocks)
}

// tokens returns a token count, limited to the range of a record's field.
func tokens(usage topics.Raw, name string) int64 {
	n := amount(usage, name)
	if n == nil {
		return 0
	}
	return int64(min(max(*n, 0), math.MaxInt32))
}

// thinkSize returns an upper bound of the size of a think-response's record.
func (s *transition) thinkSize(r topics.ThinkResponse) int {
	size := envelope + escaped*3*len(s.key) + len(r.PreviousMessages) + len(r.LastInputMessage) +
		len(r.LastInputResponse)
	if r.UserID != nil {
		size += escaped * len(*r.UserID)
	}
	return size
}
