package fold

import (
	"slices"

	"github.com/turntable-streams/turntable/topics"
)

// Mender makes a stream's deltas whole before they are sent on: a producer that cuts a text between the halves of a
// surrogate pair writes what no strict reader takes. It holds the half at the end of a delta back until the block's
// next one, and puts it before that; a half that stays alone becomes U+FFFD, as it does in a batch. The events it gives
// fold as those it got, unless more than 64 blocks wait at once: then it gives the oldest up. The zero value is ready.
// It is not safe for concurrent use.
type Mender struct{ held []heldHalf }

const maxHeld = 64

type heldHalf struct {
	key   string // of the block
	id    topics.Raw
	delta Event      // that the half was cut from
	half  topics.Raw // its escape
}

// Append appends to dst what can be sent on with event e: mostly e itself, nothing for a delta of half a character,
// two for an event that ends the wait for one. What is held back aliases e until then.
func (m *Mender) Append(dst []Event, e Event) []Event {
	switch e.Type {
	case "message_delta":
		return m.delta(dst, e)
	case "message_start", "message_end":
		if id := lookup(e.data, "id"); len(m.held) > 0 && hashable(id) {
			dst = m.release(dst, string(appendKey(nil, id)))
		}
	}
	return append(dst, e)
}

// Flush appends to dst what is still held back, at the end of a stream.
func (m *Mender) Flush(dst []Event) []Event {
	for len(m.held) > 0 {
		dst = m.release(dst, m.held[0].key)
	}
	return dst
}

// release gives up waiting for the other half.
func (m *Mender) release(dst []Event, key string) []Event {
	for i, h := range m.held {
		if h.key == key {
			m.held = slices.Delete(m.held, i, i+1)
			return append(dst, h.delta.withDelta(topics.Raw(`"\u`+replacement+`"`)))
		}
	}
	return dst
}

func (m *Mender) delta(dst []Event, e Event) []Event {
	switch {
	case len(m.held) == 0 && !escapesSurrogate(e.delta), !isString(e.delta):
		return append(dst, e)
	case !hashable(e.id): // of no block
		text, _ := mended(e.delta)
		return append(dst, e.withDelta(text))
	}
	key := string(appendKey(nil, e.id))
	text := []byte{'"'}
	for i, h := range m.held {
		if h.key == key {
			m.held = slices.Delete(m.held, i, i+1)
			text = append(text, h.half...)
			break
		}
	}
	text = append(text, e.delta[1:len(e.delta)-1]...)
	if n := trailingHalf(text); n > 0 {
		if len(m.held) == maxHeld {
			dst = m.release(dst, m.held[0].key)
		}
		m.held = append(m.held, heldHalf{key: key, id: e.id, delta: e, half: slices.Clone(text[n:])})
		if text = text[:n]; n == 1 {
			return dst
		}
	}
	text = append(text, '"')
	mend(text)
	return append(dst, e.withDelta(text))
}

// trailingHalf is where the high half at the end of a text starts, 0 if there is none.
func trailingHalf(text []byte) int {
	n := len(text) - 6
	if n < 1 {
		return 0
	}
	unit, ok := escapedUnit(text[n:])
	if !ok || !isHigh(unit) {
		return 0
	}
	slashes := 0
	for n-slashes-1 >= 0 && text[n-slashes-1] == '\\' {
		slashes++
	}
	if slashes%2 == 1 {
		return 0
	}
	return n
}

// withDelta is the event with another text.
func (e Event) withDelta(text topics.Raw) Event {
	start, end := span(e.data, "delta")
	data := slices.Concat(e.data[:start], text, e.data[end:])
	raw := data
	if !e.flat {
		start, end = span(e.raw, "data")
		raw = slices.Concat(e.raw[:start], data, e.raw[end:])
	}
	changed, _ := DecodeEvent(raw)
	return changed
}
