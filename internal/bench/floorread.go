package main

import (
	"bytes"
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// reader extracts the fields that the floor needs from a record.
type fieldReader interface {
	thought(value []byte) (thinkFields, error)
	result(value []byte) (toolResult, error)
}

// thinkFields are the fields of a think-response as raw JSON. answer is set only if there are no tool calls.
type thinkFields struct {
	previous, latest, said, answer []byte
	uses                           [][]byte
}

type toolResult struct {
	id, name string
	result   []byte
}

var errUnknownShape = errors.New("bench: floor: unknown shape of a record")

// byJSON reads records with fields in any order.
type byJSON struct{}

func (byJSON) thought(value []byte) (thinkFields, error) {
	var r struct {
		Previous jsontext.Value   `json:"previous_messages"`
		Latest   jsontext.Value   `json:"last_input_message"`
		Said     jsontext.Value   `json:"last_input_response"`
		Uses     []jsontext.Value `json:"tool_uses"`
	}
	if err := json.Unmarshal(value, &r); err != nil {
		return thinkFields{}, err
	}
	t := thinkFields{previous: r.Previous, latest: r.Latest, said: r.Said}
	for _, item := range r.Uses {
		t.uses = append(t.uses, item)
	}
	if len(t.uses) > 0 {
		return t, nil
	}
	var said []struct {
		Content jsontext.Value `json:"content"`
	}
	if err := json.Unmarshal(r.Said, &said); err != nil {
		return thinkFields{}, err
	}
	if len(said) == 0 {
		return thinkFields{}, errUnknownShape
	}
	t.answer = said[0].Content
	return t, nil
}

func (byJSON) result(value []byte) (toolResult, error) {
	var r struct {
		ID     string         `json:"tool_use_id"`
		Name   string         `json:"name"`
		Result jsontext.Value `json:"result"`
	}
	if err := json.Unmarshal(value, &r); err != nil {
		return toolResult{}, err
	}
	return toolResult{id: r.ID, name: r.Name, result: r.Result}, nil
}

// byPlace relies on the order of fields and does not read histories.
type byPosition struct{}

func (byPosition) thought(value []byte) (thinkFields, error) {
	previous, rest, ok := bigField(value, `"previous_messages":`, `,"last_input_message":`)
	latest, rest, found := bytes.Cut(rest, []byte(`,"last_input_response":`))
	said, rest, same := bytes.Cut(rest, []byte(`,"tool_uses":`))
	if !ok || !found || !same {
		return thinkFields{}, errUnknownShape
	}
	t := thinkFields{previous: previous, latest: latest, said: said}
	if t.uses = objects(rest); len(t.uses) > 0 {
		return t, nil
	}
	if t.answer, ok = cut(said, `"content":`, `,"timestamp":`); !ok {
		return thinkFields{}, errUnknownShape
	}
	return t, nil
}

// objects returns the elements of an array of objects, none for null.
func objects(array []byte) [][]byte {
	var all [][]byte
	if array[0] != '[' {
		return nil
	}
	depth, start, quoted := 0, 0, false
	for i := 1; i < len(array); i++ {
		switch c := array[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			if depth == 0 {
				start = i
			}
			depth++
		case c == '}':
			depth--
			if depth == 0 {
				all = append(all, array[start:i+1])
			}
		case c == ']' && depth == 0:
			return all
		}
	}
	return all
}

func (byPosition) result(value []byte) (toolResult, error) {
	id, ok := text(value, `"tool_use_id":"`)
	name, named := text(value, `"name":"`)
	_, rest, given := bytes.Cut(value, []byte(`"result":`))
	end := bytes.LastIndex(rest, []byte(`,"latency_ms":`))
	if !ok || !named || !given || end < 0 {
		return toolResult{}, errUnknownShape
	}
	return toolResult{id: string(id), name: string(name), result: rest[:end]}, nil
}
