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

// payload is what a token's JSON holds. It is read as FlightDeck's Java reads it: scalars are converted to the declared
// type, unknown fields and what follows the object are passed over, of a repeated field the last counts.
type payload struct {
	session, toolUse, toolID, name, agent *string
	total, iat, exp                       int64
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
		field := name.String() // the token is good until the next read
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

// words is a string, or the literal of a number or a boolean; nil for null.
func words(value jsontext.Value) (*string, bool) {
	var s string
	switch value.Kind() {
	case 'n':
		return nil, true
	case '{', '[':
		return nil, false
	case '"':
		// The error is about lone surrogates, which are replaced.
		b, _ := jsontext.AppendUnquote(nil, value)
		s = string(b)
	default:
		s = string(value)
	}
	return &s, true
}

// integer is a number cut at its point, or a string that is an integer; 0 for null and for a blank string.
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
	return Claims{
		SessionID: *p.session, ToolUseID: *p.toolUse, ToolID: p.toolID, Name: p.name, TotalTools: int(p.total),
		Agent: p.agent, IssuedAt: second(p.iat), Expires: second(p.exp),
	}
}

// lastSecond is that of the year 9999: beyond it, times do not compare.
const lastSecond = 253402300799

// second is the zero time where a token has no positive time.
func second(s int64) time.Time {
	if s <= 0 {
		return time.Time{}
	}
	return time.Unix(min(s, lastSecond), 0)
}
