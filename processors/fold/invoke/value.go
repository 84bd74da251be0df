package invoke

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/fold"
)

var null = jsontext.Value("null")

func numbered(kind string, n int) string { return kind + "-" + strconv.Itoa(n) }

func notNull(v jsontext.Value) jsontext.Value {
	if v.Kind() == 'n' {
		return nil
	}
	return v
}

// first is the first value that is there, or null.
func first(values ...jsontext.Value) jsontext.Value {
	for _, v := range values {
		if v != nil {
			return v
		}
	}
	return null
}

// truthy reports what Python takes for true.
func truthy(v jsontext.Value) bool {
	switch v.Kind() {
	case 't':
		return true
	case '"', '{', '[':
		compact := respace(nil, v, false)
		return len(compact) > 2
	case '0':
		mantissa, _, _ := strings.Cut(strings.ToLower(string(v)), "e")
		return strings.Trim(mantissa, "-0.") != ""
	}
	return false
}

// idText is an id as a text, which is what the ai package wants: a text as it is, a number or a boolean by its JSON.
func idText(v jsontext.Value) (id string, ok bool) {
	switch v.Kind() {
	case '"':
		return text(v)
	case '0', 't', 'f':
		return string(v), true
	}
	return "", false
}

// blockID is the id of a block. Blocks without one, or with null, are one block, as in fold.
func blockID(e fold.Event) (id string, ok bool) {
	value, ok := e.Field("id")
	if !ok || value.Kind() == 'n' {
		return "block", true
	}
	return idText(value)
}

func firstID(values ...jsontext.Value) (string, bool) {
	for _, v := range values {
		if id, ok := idText(v); ok {
			return id, true
		}
	}
	return "", false
}

// toolName is a name, empty for what is none.
func toolName(v jsontext.Value) string {
	s, _ := text(v)
	return s
}

func firstName(values ...jsontext.Value) string {
	for _, v := range values {
		if s := toolName(v); s != "" {
			return s
		}
	}
	return ""
}

func someText(v jsontext.Value) bool { return v.Kind() == '"' && len(v) > 2 }

// asText is a value as a JSON string: a text as it is, nothing and null as empty, all else as its JSON.
func asText(v jsontext.Value) jsontext.Value {
	switch v.Kind() {
	case '"':
		return v
	case 'n', 0:
		return quote("")
	}
	return quote(string(respace(nil, v, false)))
}

// eachMember calls visit for the members of an object until it returns false, which it returns then.
func eachMember(object jsontext.Value, visit func(name string, value jsontext.Value) bool) bool {
	if object.Kind() != '{' {
		return true
	}
	dec := jsontext.NewDecoder(bytes.NewReader(object),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if _, err := dec.ReadToken(); err != nil {
		return true
	}
	for dec.PeekKind() == '"' {
		t, err := dec.ReadToken()
		if err != nil {
			return true
		}
		name := t.String()
		value, err := dec.ReadValue()
		if err != nil {
			return true
		}
		if !visit(name, bytes.Clone(value)) {
			return false
		}
	}
	return true
}
