package turn

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// longText is the size from which on a text is written in pieces.
const longText = 64 << 10

// streamResponse writes the events of a response whose worker wrote none. It returns the attempt that they are.
func (s *transition) streamResponse(r topics.ThinkResponse) topics.AgentAttempt {
	w := replyEvents{limit: s.rules.eventLimit(), step: s.row.Turn.Step, called: map[string]bool{}}
	elements, _ := topics.Elements(r.LastInputResponse)
	for _, raw := range elements {
		m, err := topics.DecodeMessage(raw)
		switch {
		case err != nil:
		case m.Role == nil || *m.Role != roleReplies: // responses of older workers begin with what they answer
			w.events = nil
		default:
			w.message(m.Content)
		}
	}
	for _, item := range r.ToolUses {
		w.call(item.ToolUseID, item.Name, item.Input)
	}
	turn := s.row.Turn
	for i, e := range w.events {
		s.emit(turn.Message.TurnId, turn.Step, ReplyStreamed{
			SessionID: s.key, TurnID: turn.Message.TurnId, Step: int64(turn.Step), Attempt: ownAttempt, Seq: int64(i + 1), Event: e,
		}, i+1)
	}
	return topics.AgentAttempt{Attempt: ownAttempt, Seq: int64(len(w.events))}
}

// replyEvents collects the events of a response.
type replyEvents struct {
	limit  int
	step   uint32
	blocks int
	events []topics.Raw
	called map[string]bool
}

// message adds the texts and the calls of a message of the model.
func (w *replyEvents) message(content topics.Raw) {
	if text := topics.TextOf(content); len(content) > 0 && content[0] == '"' && text != nil {
		w.text(*text)
		return
	}
	blocks, _ := topics.Elements(content)
	for _, block := range blocks {
		kind, _ := topics.Lookup(block, "type")
		switch string(kind) {
		case `"text"`:
			w.text(stringIn(block, "text"))
		case `"tool_use"`:
			id, name := stringIn(block, "id"), stringIn(block, "name")
			input, _ := topics.Lookup(block, "input")
			w.call(&id, &name, input)
		}
	}
}

func stringIn(object topics.Raw, name string) string {
	v, _ := topics.Lookup(object, name)
	if text := topics.TextOf(v); len(v) > 0 && v[0] == '"' && text != nil {
		return *text
	}
	return ""
}

func (w *replyEvents) text(text string) {
	switch {
	case text == "":
	case len(text) <= longText:
		w.events = append(w.events, wrapped("message", stringMember(nil, "text", text)))
	default:
		id := "msg-" + strconv.FormatUint(uint64(w.step), 10) + "-" + strconv.Itoa(w.blocks)
		w.blocks++
		w.events = append(w.events, wrapped("message_start", stringMember(nil, "id", id)))
		for len(text) > 0 {
			piece := validPrefix(text, longText)
			text = text[len(piece):]
			w.events = append(w.events, wrapped("message_delta", stringMember(stringMember(nil, "id", id), "delta", piece)))
		}
		w.events = append(w.events, wrapped("message_end", stringMember(nil, "id", id)))
	}
}

// validPrefix returns the longest prefix of a text that has at most n bytes and does not divide a character.
func validPrefix(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for i := n; i > n-4; i-- {
		if b := text[i]; b < 0x80 || b >= 0xc0 {
			return text[:i]
		}
	}
	return text[:n]
}

// call adds a tool call. The list of calls repeats those of the messages.
func (w *replyEvents) call(id, name *string, input topics.Raw) {
	if blank(id) || blank(name) || len(*id) > maxID || len(*name) > maxID || w.called[*id] { // the call is refused
		return
	}
	w.called[*id] = true
	if len(input) == 0 || string(input) == "null" {
		input = topics.Raw("{}")
	}
	e := wrapped("tool_call", rawMember(stringMember(stringMember(nil, "id", *id), "name", *name), "input", input))
	if len(e) > w.limit {
		e = wrapped("tool_call", stringMember(stringMember(nil, "id", *id), "name", *name))
	}
	w.events = append(w.events, e)
}

// resultEvent returns the event of a call's result. An error takes the place of a result that is too large for an event.
func (s *transition) resultEvent(r *turnrow.Result) topics.Raw {
	limit := s.rules.eventLimit()
	failed := r.Status != nil && *r.Status == statusError
	output := topics.Raw(appendResult(nil, r))
	data := resultData(*r.ToolUseId, output, failed, limit)
	if len(data) > limit {
		text := "the tool's result has " + strconv.Itoa(len(output)) + " bytes, which is too large for an event"
		data = resultData(*r.ToolUseId, errorResult(text, "too_large"), failed, limit)
	}
	return wrapped("tool_result", data)
}

// resultData returns the members of the event of a result: its output as text, and as structured data if there is room.
func resultData(id string, output topics.Raw, failed bool, limit int) []byte {
	data := stringMember(nil, "id", id)
	if output[0] == '"' {
		data = rawMember(data, "output", output)
	} else {
		data = stringMember(data, "output", string(output))
	}
	data = rawMember(data, "isError", strconv.AppendBool(nil, failed))
	if reason, _ := topics.Lookup(output, "reason"); failed && string(reason) == `"`+reasonOfDenied+`"` {
		data = rawMember(data, "denied", topics.Raw("true"))
	}
	if output[0] != '"' && len(data)+len(output) <= limit {
		data = rawMember(data, "data", output)
	}
	return data
}

// streamGate writes that a call waits for its approval.
func (s *transition) streamGate(i int, g GateRequested) {
	if !s.streams() {
		return
	}
	request := func(args topics.Raw) topics.Raw {
		call := stringMember(stringMember(nil, "id", g.ToolUseID), "toolCallId", g.ToolUseID)
		call = stringMember(stringMember(call, "name", g.Tool), "resolvedName", g.Tool)
		if args != nil {
			call = rawMember(rawMember(call, "rawInput", args), "input", args)
		}
		call = append(stringMember(call, "kind", "execute"), '}')
		payload := rawMember(stringMember(nil, "toolCallId", g.ToolUseID), "toolCall", call)
		payload = rawMember(payload, "availableReplies", topics.Raw(`["once","reject"]`))
		if g.Message != "" {
			payload = stringMember(payload, "message", g.Message)
		}
		if args == nil && g.Args != nil {
			payload = rawMember(payload, "truncated", topics.Raw("true"))
			payload = stringMember(rawMember(payload, "bytes", strconv.AppendInt(nil, int64(len(g.Args)), 10)), "url", "/api/gates/"+g.GateID)
		}
		payload = stringMember(rawMember(payload, "expiresMs", strconv.AppendInt(nil, g.ExpiresMS, 10)), "argsSha256", g.ArgsSHA256)
		data := stringMember(stringMember(nil, "id", g.GateID), "kind", "user_approval")
		return wrapped("interaction_request", rawMember(data, "payload", append(payload, '}')))
	}
	e := request(g.Args)
	if len(e) > s.rules.eventLimit() {
		e = request(nil) // who decides reads the arguments from the gate
	}
	s.streamed(seqOf(i, callRequest), topics.AgentEvent{Event: e})
}

// streamOutcome writes the outcome of a call's gate.
func (s *transition) streamOutcome(i int, gate *turnrow.Gate, o topics.GateOutcome) {
	if !s.streams() {
		return
	}
	payload := rawMember(nil, "approved", strconv.AppendBool(nil, o.Status == topics.GateApproved))
	payload = stringMember(payload, "toolCallId", s.row.Turn.Calls[i].GetToolUseId())
	data := stringMember(stringMember(nil, "id", gate.GateId), "kind", "user_approval")
	s.streamed(seqOf(i, callResponse), topics.AgentEvent{
		Event: wrapped("interaction_response", rawMember(data, "payload", append(payload, '}'))),
	})
}

// rawMember appends a member to an object that is not closed; nil begins one.
func rawMember(object []byte, name string, value topics.Raw) []byte {
	if object == nil {
		object = []byte{'{'}
	} else {
		object = append(object, ',')
	}
	object = append(append(append(object, '"'), name...), '"', ':')
	return append(object, value...)
}

func stringMember(object []byte, name, text string) []byte {
	value, _ := jsontext.AppendQuote(nil, text) // invalid UTF-8 is replaced
	return rawMember(object, name, value)
}

// wrapped returns an event whose data are the members of an object that is not closed.
func wrapped(kind string, members []byte) topics.Raw {
	data := append(stringMember(nil, "type", kind), ',')
	data = append(append(data, members[1:]...), '}')
	return append(rawMember(stringMember(nil, "type", kind), "data", data), '}')
}
