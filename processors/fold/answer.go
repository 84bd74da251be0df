package fold

import (
	"math"
	"strconv"
	"time"

	"github.com/turntable-streams/turntable/topics"
)

// stopPaused is the stop reason of a run that waits for a decision: it is no answer.
const stopPaused = `"paused"`

// answer has a turn go on in the pipeline: as a think-response, or as a failure of the model's worker.
func (s *session) answer(t *Turn, b topics.BatchMessage) {
	request := s.request(t)
	switch {
	case b.State == topics.BatchComplete && string(b.StopReason) == stopPaused:
		return
	case b.State == topics.BatchComplete:
		r := s.thinkResponse(b, request)
		if s.thinkSize(r) <= s.rules.RecordLimit {
			s.think(t, Thought(r))
			return
		}
		reason := topics.ReasonTooLarge
		b.Reason = &reason
	}
	// The turn processor takes a failure without an input for one of the step that is open when it reads it. By then the
	// step of this turn may be over (cancelled, timed out) and that of the next message open, so a failure that cannot name
	// its input is not written. If the step is still open, its think timeout ends it.
	if _, err := topics.DecodeMessage(request.LatestInput); err == nil {
		s.think(t, Unthought{LatestInput: request.LatestInput, Reason: b.Reason})
	}
}

func (s *session) think(t *Turn, v Value) {
	s.effects = append(s.effects, Emit{Key: s.key, ID: recordID(s.key, t.Id, "think"), Value: v})
}

// request is the enriched message that the turn answers, empty where none is known.
func (s *session) request(t *Turn) (m topics.EnrichedMessage) {
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

// withoutHistory is an enriched message with everything that request reads, except its history.
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

// amount is a member of an object that is a number, else nil.
func amount(object topics.Raw, name string) *float64 {
	v, _ := topics.Lookup(object, name)
	if n, err := strconv.ParseFloat(string(v), 64); err == nil && !math.IsInf(n, 0) {
		return &n
	}
	return nil
}

// thinkResponse is the answer of a turn. Its text is the assistant's; the tools that the agent ran itself are no calls
// for the pipeline and are left out, as a call without its result would make providers refuse the conversation.
func (s *session) thinkResponse(b topics.BatchMessage, m topics.EnrichedMessage) topics.ThinkResponse {
	now := instant(s.now)
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
		r.LastInputResponse = AppendMessages(nil, []topics.Raw{topics.Raw(topics.EncodeMessage(topics.Message{
			SessionID: &s.key, UserID: m.UserID, Role: &role, Content: text, Timestamp: &now,
		}))})
	}
	return r
}

// textBlocks are the texts of the assistant as content blocks, nil where it wrote none.
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
	return AppendMessages(nil, blocks)
}

// tokens is a count of tokens, as far as a record can say it.
func tokens(usage topics.Raw, name string) int64 {
	n := amount(usage, name)
	if n == nil {
		return 0
	}
	return int64(min(max(*n, 0), math.MaxInt32))
}

// thinkSize is an upper bound of what a think-response takes on the wire.
func (s *session) thinkSize(r topics.ThinkResponse) int {
	size := envelope + escaped*3*len(s.key) + len(r.PreviousMessages) + len(r.LastInputMessage) +
		len(r.LastInputResponse)
	if r.UserID != nil {
		size += escaped * len(*r.UserID)
	}
	return size
}

// instant is a time as the pipeline's records have it: ISO-8601 in UTC with milliseconds.
func instant(t time.Time) string {
	t = t.UTC().Truncate(time.Millisecond)
	if t.Nanosecond() == 0 {
		return t.Format("2006-01-02T15:04:05Z")
	}
	return t.Format("2006-01-02T15:04:05.000Z")
}
