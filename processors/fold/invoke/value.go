package invoke

import (
	"bytes"
	"math"
	"math/big"
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

// ident is an id as fold compares it: texts and numbers apart, and numbers and booleans that Python takes for equal (1,
// 1.0 and true) as one. The ai package wants its text.
type ident struct {
	text   string
	number bool
}

func idOf(v jsontext.Value) (id ident, ok bool) {
	switch v.Kind() {
	case '"':
		s, _ := text(v)
		return ident{text: s}, true
	case 't':
		return ident{"1", true}, true
	case 'f':
		return ident{"0", true}, true
	case '0':
		return ident{numberText(string(v)), true}, true
	}
	return ident{}, false
}

// numberText is a number's shortest text: integers are exact, all else is a float64, as Python has it.
func numberText(s string) string {
	if strings.Trim(s, "-0123456789") == "" {
		if strings.Trim(s, "-0") == "" {
			return "0"
		}
		return s
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != math.Trunc(f) {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	whole, _ := big.NewFloat(f).Int(nil)
	return whole.String()
}

// blockID is the id of a block. Blocks without one, or with null, are one block, as in fold.
func blockID(e fold.Event) (id ident, ok bool) {
	value, ok := e.Field("id")
	if !ok || value.Kind() == 'n' {
		return ident{"block", true}, true
	}
	return idOf(value)
}

func firstID(values ...jsontext.Value) (ident, bool) {
	for _, v := range values {
		if id, ok := idOf(v); ok {
			return id, true
		}
	}
	return ident{}, false
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
