package wiretest

import (
	"strings"
)

// encode writes the response in the format that the plan selects.
func (r *response) encode(p Plan) []byte {
	switch {
	case p.Has(QuirkCamel):
		return []byte(r.camelCase())
	case p.Has(QuirkLegacy):
		return []byte(r.legacy())
	default:
		return []byte(r.snakeCase())
	}
}

func (r *response) snakeCase() string {
	return `{"session_id":` + r.session + `,"user_id":` + r.user + `,"total_session_cost":` + r.total +
		`,"previous_session_cost":` + r.previous + `,"think_cost":0.001,"think_input_tokens":` + number(r.input) +
		`,"think_output_tokens":` + number(r.output) + `,"previous_messages":` + r.previousMessages() +
		`,"last_input_message":` + r.echo + `,"last_input_response":` + r.messages() +
		`,"tool_uses":` + r.toolUses() + `,"end_turn":` + boolean(r.end) + `,"compaction":` + boolean(r.compaction) +
		`,"compaction_input_tokens":0,"compaction_output_tokens":0,"compaction_cost":0.0,"timestamp":` + r.time + `}`
}

func (r *response) camelCase() string {
	return `{"sessionId":` + r.session + `,"userId":` + r.user + `,"cost":` + r.total +
		`,"prevSessionCost":` + r.previous +
		`,"inputTokens":` + number(r.input) + `,"outputTokens":` + number(r.output) +
		`,"previousMessages":` + r.previousMessages() + `,"lastInputMessage":` + r.echo +
		`,"lastInputResponse":` + r.messages() + `,"toolUses":` + r.toolUses() + `,"endTurn":` + boolean(r.end) +
		`,"timestamp":` + r.time + `}`
}

// legacy is the format of the first FlightDeck images: all messages in one list, and no history.
func (r *response) legacy() string {
	messages := append([]string{}, r.messageTexts...)
	if r.echo != "null" {
		messages = append([]string{r.echo}, messages...)
	}
	return `{"session_id":` + r.session + `,"user_id":` + r.user + `,"cost":` + r.total + `,"prev_session_cost":` +
		r.previous + `,"input_tokens":` + number(r.input) + `,"output_tokens":` + number(r.output) +
		`,"messages":[` + strings.Join(messages, ",") + `],"tool_uses":` + r.toolUses() + `,"end_turn":` + boolean(r.end) +
		`,"timestamp":` + r.time + `}`
}

func (r *response) previousMessages() string {
	texts := make([]string, len(r.history))
	for i, m := range r.history {
		texts[i] = string(m)
	}
	return "[" + strings.Join(texts, ",") + "]"
}

func (r *response) messages() string {
	if len(r.messageTexts) == 0 {
		return "null"
	}
	ahead := ""
	if r.nullMessageAhead {
		ahead = "null,"
	}
	return "[" + ahead + strings.Join(r.messageTexts, ",") + "]"
}

func (r *response) toolUses() string {
	if len(r.items) == 0 {
		return "null"
	}
	id, tool, session, total := "tool_use_id", "tool_id", "session_id", "total_tools"
	if r.camel {
		id, tool, session, total = "toolUseId", "toolId", "sessionId", "totalTools"
	}
	texts := make([]string, len(r.items))
	for i, it := range r.items {
		if it.null {
			texts[i] = "null"
			continue
		}
		texts[i] = `{"` + id + `":` + nullable(it.id) + `,"` + tool + `":` + nullable(it.name) + `,"name":` +
			nullable(it.name) + `,"input":` + it.input + `,"` + session + `":` + r.session + `,"` + total + `":` +
			number(it.total) + `,"timestamp":` + r.time + `}`
	}
	return "[" + strings.Join(texts, ",") + "]"
}

func boolean(b bool) string {
	if b {
		return "true"
	}
	return "false"
}
