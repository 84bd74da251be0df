package invoke

import (
	"bytes"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

var null = topics.Raw("null")

func boolean(v bool) topics.Raw {
	if v {
		return topics.Raw("true")
	}
	return topics.Raw("false")
}

func numbered(kind string, n int) string { return kind + "-" + strconv.Itoa(n) }

func notNull(v topics.Raw) topics.Raw {
	if kindOf(v) == 'n' {
		return nil
	}
	return v
}

// first returns the first value that is not nil, or null.
func first(values ...topics.Raw) topics.Raw {
	for _, v := range values {
		if v != nil {
			return v
		}
	}
	return null
}

// truthy reports whether the value is true in Python.
func truthy(v topics.Raw) bool {
	switch kindOf(v) {
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

// ident is an id that compares as in fold: a text never equals a number, and numbers and booleans that are equal in Python
// (1, 1.0 and true) are equal. The Vercel stream uses its text.
type ident struct {
	text   string
	number bool
}

func idOf(v topics.Raw) (id ident, ok bool) {
	switch kindOf(v) {
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

// numberText returns a number's shortest text. Integers are exact, other numbers are converted to a float64 as in Python.
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

// blockID returns the id of a block. Blocks without an id and with null have the same id, as in fold.
func blockID(e folder.Event) (id ident, ok bool) {
	value, ok := e.Field("id")
	if !ok || kindOf(value) == 'n' {
		return ident{"block", true}, true
	}
	return idOf(value)
}

func firstID(values ...topics.Raw) (ident, bool) {
	for _, v := range values {
		if id, ok := idOf(v); ok {
			return id, true
		}
	}
	return ident{}, false
}

// textOf returns the text of a JSON string, empty for other values.
func textOf(v topics.Raw) string {
	s, _ := text(v)
	return s
}

func firstName(values ...topics.Raw) string {
	for _, v := range values {
		if s := textOf(v); s != "" {
			return s
		}
	}
	return ""
}

func someText(v topics.Raw) bool { return kindOf(v) == '"' && len(v) > 2 }

// asText returns a value as a JSON string: a string unchanged, nil and null as empty, any other value as its JSON.
func asText(v topics.Raw) topics.Raw {
	switch kindOf(v) {
	case '"':
		return v
	case 'n', 0:
		return quote("")
	}
	return quote(string(respace(nil, v, false)))
}

// eachMember calls visit for each member of an object until visit returns false. It returns false if visit did.
func eachMember(object topics.Raw, visit func(name string, value topics.Raw) bool) bool {
	if kindOf(object) != '{' {
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

// kindOf returns the kind of a JSON value by its first byte; 0 for nil.
func kindOf(v topics.Raw) jsontext.Kind { return jsontext.Value(v).Kind() }
