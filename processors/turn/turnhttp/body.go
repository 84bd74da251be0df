package turnhttp

import (
	"bytes"
	"net/http"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/topics"
)

// readBody reads the first JSON value of a request's body. Like FlightDeck's Java reader, it returns nil for a blank body and
// ignores what follows the value. If ok is false, the request must be answered with rejection.
func (h *Handler) readBody(w http.ResponseWriter, v *entrance.Visit) (value topics.Raw, rejection answer, ok bool) {
	raw, refusal := v.ReadBody(w)
	if refusal != nil {
		return nil, refusal.Answer(), false
	}
	value, wrong := firstValue(raw)
	switch {
	case wrong == "":
		return value, answer{}, true
	case h.config.FlightDeck:
		return nil, entrance.Internal(), false
	default:
		return nil, entrance.Failed(http.StatusBadRequest, wrong), false
	}
}

// maxBodyDepth is the limit of nesting in a body. It is below that of a record because the body is nested in records.
const maxBodyDepth = topics.MaxValueDepth - 4

// firstValue returns the first JSON value of raw, or nil if raw is blank. wrong is the reason to reject raw, if any.
func firstValue(raw []byte) (value topics.Raw, wrong string) {
	const noJSON = "Request body is not JSON"
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) == 0 {
		return nil, ""
	}
	dec := jsontext.NewDecoder(bytes.NewReader(raw),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err := dec.SkipValue(); err != nil {
		return nil, noJSON
	}
	value = raw[:dec.InputOffset()]
	switch {
	case !utf8.Valid(value):
		return nil, noJSON
	case codec.Deeper(value, maxBodyDepth):
		return nil, "Request body is nested too deep"
	}
	return value, ""
}

// members returns the members of an object with the given names. If a name is repeated, the last member counts. A value
// that is not an object has no members.
func members(value topics.Raw, names ...string) map[string]topics.Raw {
	selected := make(map[string]topics.Raw, len(names))
	eachMember(value, func(name string, member topics.Raw) {
		for _, n := range names {
			if n == name {
				selected[name] = member
			}
		}
	})
	return selected
}

// eachMember calls visit for each member of a valid object, in order.
func eachMember(value topics.Raw, visit func(name string, member topics.Raw)) {
	dec := jsontext.NewDecoder(bytes.NewReader(value),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if dec.PeekKind() != '{' {
		return
	}
	if _, err := dec.ReadToken(); err != nil {
		return
	}
	for dec.PeekKind() == '"' {
		t, err := dec.ReadToken()
		if err != nil {
			return
		}
		name := t.String()
		member, err := dec.ReadValue()
		if err != nil {
			return
		}
		visit(name, topics.Raw(bytes.Clone(member)))
	}
}

// textForm converts a value to text like Java's asText: null becomes "null"; an object or
// an array becomes the empty text.
func textForm(value topics.Raw) string {
	if len(value) == 0 || value[0] == '{' || value[0] == '[' {
		return ""
	}
	if value[0] == 'n' {
		return "null"
	}
	return *topics.TextOf(value)
}

// isNull reports whether a member is absent or null.
func isNull(value topics.Raw) bool { return len(value) == 0 || value[0] == 'n' }

// compact returns a valid value without white space between its tokens.
func compact(value topics.Raw) topics.Raw {
	v := jsontext.Value(bytes.Clone(value))
	_ = v.Compact(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return topics.Raw(v)
}
