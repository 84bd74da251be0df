package folder

import (
	"unicode/utf8"

	"github.com/turntable-streams/turntable/topics"
)

// readDelta is a fast path for message_delta events, which are most of a stream. It reads simple ones, in either
// encoding, in one pass over their bytes. ok is false for every other event, which decodeAny then decodes. For every
// input that readDelta accepts, decodeAny must return the same event.
func readDelta(raw []byte) (e Event, ok bool) {
	p := plainDelta{raw: raw, ascii: true}
	start := skipSpace(raw, 0)
	end, outer, ok := p.object(start, false)
	if !ok || skipSpace(raw, end) != len(raw) || !p.ascii && !utf8.Valid(raw) {
		return Event{}, false
	}
	e = Event{Type: "message_delta", raw: raw[start:end]}
	if string(outer.kind) != `"message_delta"` {
		return Event{}, false
	}
	switch {
	case p.data == nil:
		e.flat, e.data = true, e.raw
		e.id, e.delta = outer.id, outer.delta
	case outer.id == nil && outer.delta == nil:
		e.data = p.data
		e.id, e.delta = p.inner.id, p.inner.delta
	default:
		return Event{}, false
	}
	return e, true
}

type plainDelta struct {
	raw   []byte
	ascii bool
	data  topics.Raw
	inner deltaFields
}

type deltaFields struct{ kind, id, delta topics.Raw }

// object reads an object whose members are type, id, delta and, unless inner, data, each at most once. All but data must
// be strings, and only delta may contain escapes. ok is false for any other object.
func (p *plainDelta) object(i int, inner bool) (end int, f deltaFields, ok bool) {
	b := p.raw
	if i >= len(b) || b[i] != '{' {
		return 0, f, false
	}
	for {
		i = skipSpace(b, i+1)
		end, escaped, ok := p.text(i)
		if !ok || escaped {
			return 0, f, false
		}
		name := b[i+1 : end-1]
		i = skipSpace(b, end)
		if i >= len(b) || b[i] != ':' {
			return 0, f, false
		}
		i = skipSpace(b, i+1)
		if string(name) == "data" {
			if inner || p.data != nil {
				return 0, f, false
			}
			end, p.inner, ok = p.object(i, true)
			if !ok {
				return 0, f, false
			}
			p.data = b[i:end:end]
		} else {
			end, escaped, ok = p.text(i)
			if !ok || !f.set(string(name), b[i:end:end], escaped) {
				return 0, f, false
			}
		}
		i = skipSpace(b, end)
		switch {
		case i >= len(b):
			return 0, f, false
		case b[i] == '}':
			return i + 1, f, true
		case b[i] != ',':
			return 0, f, false
		}
	}
}

func (f *deltaFields) set(name string, value topics.Raw, escaped bool) bool {
	field := &f.kind
	switch name {
	case "type":
	case "id":
		field = &f.id
	case "delta":
		field, escaped = &f.delta, false
	default:
		return false
	}
	if *field != nil || escaped {
		return false
	}
	*field = value
	return true
}

// text checks the JSON string that starts at i and returns the index after it.
func (p *plainDelta) text(i int) (end int, escaped, ok bool) {
	b := p.raw
	if i >= len(b) || b[i] != '"' {
		return 0, false, false
	}
	for i++; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return i + 1, escaped, true
		case c == '\\':
			escaped = true
			n := escapeLength(b[i:])
			if n == 0 {
				return 0, false, false
			}
			i += n - 1
		case c < ' ':
			return 0, false, false
		case c >= utf8.RuneSelf:
			p.ascii = false
		}
	}
	return 0, false, false
}

// escapeLength returns the length of the escape sequence at the start of b, 0 if b does not start with one.
func escapeLength(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := escapedUnit(b); ok {
			return 6
		}
	}
	return 0
}
