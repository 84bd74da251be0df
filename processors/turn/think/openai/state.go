package openai

import (
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/turn/think/internal/toolcall"
	"github.com/turntable-streams/turntable/topics"
)

// reasoning is what servers of reasoning models send beside the text and the calls of a reply, and require back with them: it
// is returned in the members that it came in.
type reasoning struct {
	texts   map[string]*member
	details []topics.Raw       // of reasoning_details
	calls   map[int]topics.Raw // extra_content of the calls
}

// member is a text that is streamed in pieces.
type member struct {
	joiner toolcall.Joiner
	text   string
}

// add adds the reasoning of a delta.
func (r *reasoning) add(delta topics.Raw) {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		piece, _ := topics.Lookup(delta, name)
		if jsontext.Value(piece).Kind() != '"' {
			continue
		}
		if r.texts == nil {
			r.texts = map[string]*member{}
		}
		if r.texts[name] == nil {
			r.texts[name] = &member{}
		}
		r.texts[name].text += r.texts[name].joiner.Add(piece)
	}
	details, _ := topics.Lookup(delta, "reasoning_details")
	elements, _ := topics.Elements(details)
	for _, e := range elements {
		if e != nil {
			r.details = append(r.details, append(topics.Raw(nil), e...))
		}
	}
}

// of adds what belongs to a call.
func (r *reasoning) of(call int, piece topics.Raw) {
	if extra, _ := topics.Lookup(piece, "extra_content"); extra != nil {
		if r.calls == nil {
			r.calls = map[int]topics.Raw{}
		}
		r.calls[call] = append(topics.Raw(nil), extra...)
	}
}

// state returns the members of the message and of its calls, which are named by their number; nil if there are none.
func (r *reasoning) state() topics.Raw {
	all := map[string]map[string]jsontext.Value{}
	put := func(of, name string, value any) {
		raw, err := json.Marshal(value, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
		if err != nil {
			return
		}
		if all[of] == nil {
			all[of] = map[string]jsontext.Value{}
		}
		all[of][name] = raw
	}
	for name, m := range r.texts {
		if text := m.text + m.joiner.End(); text != "" {
			put("message", name, text)
		}
	}
	if r.details != nil {
		list := make([]jsontext.Value, len(r.details))
		for i, d := range r.details {
			list[i] = jsontext.Value(toolcall.WellFormed(d))
		}
		put("message", "reasoning_details", list)
	}
	for call, extra := range r.calls {
		put(strconv.Itoa(call), "extra_content", jsontext.Value(toolcall.WellFormed(extra)))
	}
	if len(all) == 0 {
		return nil
	}
	raw, err := json.Marshal(all, json.Deterministic(true), jsontext.AllowDuplicateNames(true))
	if err != nil {
		return nil
	}
	return raw
}

// extraFields returns members of a state that are sent back.
func extraFields(state topics.Raw, of string) (fields map[string]jsontext.Value) {
	object, _ := topics.Lookup(state, of)
	if object == nil || json.Unmarshal(object, &fields, jsontext.AllowDuplicateNames(true)) != nil {
		return nil
	}
	return fields
}
