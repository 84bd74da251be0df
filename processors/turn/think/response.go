package think

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

// respond returns the response record of a reply: history and input unchanged, and what the model added.
func respond(s Step, in topics.EnrichedMessage, r Reply, now time.Time) topics.ThinkResponse {
	at := topics.Timestamp(now)
	calls := r.Calls()
	total := 0.0
	if in.Cost != nil {
		total = *in.Cost
	}
	if r.Cost != nil {
		total += *r.Cost
	}
	history := in.History
	if history == nil {
		history = topics.Raw("[]")
	}
	response := topics.ThinkResponse{
		SessionID: &s.SessionID, UserID: in.UserID, TotalSessionCost: &total, PreviousSessionCost: in.Cost,
		ThinkCost: r.Cost, ThinkInputTokens: r.InputTokens, ThinkOutputTokens: r.OutputTokens,
		PreviousMessages: history, LastInputMessage: in.LatestInput, EndTurn: len(calls) == 0, Timestamp: &at,
	}
	for _, c := range calls {
		response.ToolUses = append(response.ToolUses, topics.ToolUseItem{
			ToolUseID: &c.ID, ToolID: &c.Name, Name: &c.Name, Input: c.Input, SessionID: &s.SessionID,
			TotalTools: int64(len(calls)), Timestamp: &at, Invalid: c.Invalid,
		})
	}
	response.LastInputResponse = messagesOf(s, r, len(calls) > 0, at)
	return response
}

// messagesOf returns the messages of a reply: one with all blocks if tools are called, else one for each text.
func messagesOf(s Step, r Reply, calls bool, at string) topics.Raw {
	role := "assistant"
	state := r.State // of the first message
	message := func(content topics.Raw) topics.Raw {
		m := topics.Message{
			SessionID: &s.SessionID, UserID: s.UserID, Role: &role, Content: content, Timestamp: &at,
			Metadata: metadata(s.Agent, state),
		}
		state = nil
		return topics.EncodeMessage(m)
	}
	if calls {
		return bracketed([]topics.Raw{message(blocks(r.Blocks))})
	}
	var messages []topics.Raw
	for _, b := range r.Blocks {
		if strings.TrimSpace(b.Text) != "" {
			messages = append(messages, message(quoted(nil, b.Text)))
		}
	}
	return bracketed(messages)
}

// blocks returns the content of a message with tool calls, in the format of Claude's API.
func blocks(all []Block) topics.Raw {
	var parts []topics.Raw
	for _, b := range all {
		switch {
		case b.Call != nil:
			input := b.Call.Input
			if input == nil {
				input = topics.Raw("{}")
			}
			part := quoted([]byte(`{"type":"tool_use","id":`), b.Call.ID)
			part = append(quoted(append(part, `,"name":`...), b.Call.Name), `,"input":`...)
			parts = append(parts, append(append(part, input...), '}'))
		case strings.TrimSpace(b.Text) != "":
			parts = append(parts, append(quoted([]byte(`{"type":"text","text":`), b.Text), '}'))
		}
	}
	return bracketed(parts)
}

func bracketed(elements []topics.Raw) topics.Raw {
	b := topics.Raw{'['}
	for i, e := range elements {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, e...)
	}
	return append(b, ']')
}

func quoted(b []byte, text string) []byte {
	b, _ = jsontext.AppendQuote(b, text) // invalid UTF-8 is replaced
	return b
}
