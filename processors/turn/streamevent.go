package turn

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// longText is the size from which on a text is written in pieces.
const longText = 64 << 10

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
			w.text(textMember(block, "text"))
		case `"tool_use"`:
			id, name := textMember(block, "id"), textMember(block, "name")
			input, _ := topics.Lookup(block, "input")
			w.call(&id, &name, input)
		}
	}
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

func stepEvent(kind string, step uint32) topics.Raw {
	return wrapped(kind, rawMember(nil, "step", strconv.AppendUint(nil, uint64(step), 10)))
}

// resultEvent returns the event of a call's result. An error takes the place of a result that is too large for an event.
func resultEvent(r *turnrow.Result, limit int) topics.Raw {
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

// gateEvent returns the event of a call that waits for its approval, with these arguments; nil if they are too large.
func gateEvent(g gateRequested, args topics.Raw) topics.Raw {
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

// usageOf returns the usage of a turn's steps; nil if there is none.
func usageOf(used *turnrow.TurnStream) topics.Raw {
	if used == nil || used.InputTokens == 0 && used.OutputTokens == 0 && used.Cost == nil {
		return nil
	}
	usage := rawMember(nil, "input", strconv.AppendInt(nil, used.InputTokens, 10))
	usage = rawMember(usage, "output", strconv.AppendInt(nil, used.OutputTokens, 10))
	usage = rawMember(usage, "total", strconv.AppendInt(nil, used.InputTokens+used.OutputTokens, 10))
	if used.Cost != nil {
		usage = rawMember(usage, "cost", strconv.AppendFloat(nil, *used.Cost, 'g', -1, 64))
	}
	return append(usage, '}')
}

// requestOf names the message that a turn answers, as a part of the enriched message; nil if it has no request ID.
func requestOf(a *turnrow.Accepted) topics.Raw {
	if blank(a.RequestId) {
		return nil
	}
	return topics.RequestOf(*a.RequestId)
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

func appendResult(b []byte, r *turnrow.Result) []byte {
	if len(r.Result) == 0 {
		return append(b, `{}`...)
	}
	return append(b, r.Result...)
}

func errorResult(text, reason string) []byte {
	b := appendText([]byte(`{"error":`), &text)
	b = appendText(append(b, `,"reason":`...), &reason)
	return append(b, '}')
}
