package token

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/codec"
)

// payload is the decoded JSON of a token. It is decoded like in FlightDeck's Java code: scalars are converted to the
// declared type; unknown fields and what follows the object are ignored; if a field is repeated, the last one counts.
type payload struct {
	session, toolUse, toolID, name, agent, call, kid *string
	total, iat, exp                                  int64
}

func read(raw []byte) (p payload, ok bool) {
	dec := jsontext.NewDecoder(bytes.NewReader(raw),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if dec.PeekKind() != '{' {
		return payload{}, false
	}
	if _, err := dec.ReadToken(); err != nil {
		return payload{}, false
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return payload{}, false
		}
		field := name.String() // the JSON token is valid until the next read
		value, err := dec.ReadValue()
		if err != nil || !p.set(field, value) {
			return payload{}, false
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return payload{}, false
	}
	object := raw[:dec.InputOffset()]
	return p, utf8.Valid(object) && !codec.Deeper(object, codec.MaxDepth)
}

func (p *payload) set(field string, value jsontext.Value) (ok bool) {
	switch field {
	case "session_id":
		p.session, ok = words(value)
	case "tool_use_id":
		p.toolUse, ok = words(value)
	case "tool_id":
		p.toolID, ok = words(value)
	case "name":
		p.name, ok = words(value)
	case "agent":
		p.agent, ok = words(value)
	case "call_id":
		p.call, ok = words(value)
	case "kid":
		p.kid, ok = words(value)
	case "total_tools":
		p.total, ok = integer(value, 32)
	case "iat":
		p.iat, ok = integer(value, 64)
	case "exp":
		p.exp, ok = integer(value, 64)
	default:
		ok = true
	}
	return ok
}

// words returns a string, or the literal of a number or a boolean as string, or nil for null.
func words(value jsontext.Value) (*string, bool) {
	var s string
	switch value.Kind() {
	case 'n':
		return nil, true
	case '{', '[':
		return nil, false
	case '"':
		// An error only reports lone surrogates, which are replaced.
		b, _ := jsontext.AppendUnquote(nil, value)
		s = string(b)
	default:
		s = string(value)
	}
	return &s, true
}

// integer returns a number without its fraction, or the value of a string with an integer. Null and a blank string are 0.
func integer(value jsontext.Value, bits int) (int64, bool) {
	s, ok := words(value)
	switch k := value.Kind(); {
	case !ok || k == 't' || k == 'f':
		return 0, false
	case s == nil:
		return 0, true
	case k == '"':
		trimmed := strings.TrimSpace(*s)
		if trimmed == "" || trimmed == "null" {
			return 0, true
		}
		s = &trimmed
	case strings.ContainsAny(*s, ".eE"):
		f, err := strconv.ParseFloat(*s, 64)
		f = math.Trunc(f)
		bound := math.Ldexp(1, bits-1)
		return int64(f), err == nil && f >= -bound && f < bound
	}
	n, err := strconv.ParseInt(*s, 10, bits)
	return n, err == nil
}

func (p payload) claims() Claims {
	c := Claims{
		SessionID: *p.session, ToolUseID: *p.toolUse, ToolID: p.toolID, Name: p.name, TotalTools: int(p.total),
		Agent: p.agent, IssuedAt: second(p.iat), Expires: second(p.exp),
	}
	if p.call != nil {
		c.CallID = *p.call
	}
	return c
}

// lastSecond is the last second of the year 9999. Comparisons of later times may be wrong.
const lastSecond = 253402300799

// second converts Unix seconds to a time. Zero and negative seconds are the zero time.
func second(s int64) time.Time {
	if s <= 0 {
		return time.Time{}
	}
	return time.Unix(min(s, lastSecond), 0)
}
