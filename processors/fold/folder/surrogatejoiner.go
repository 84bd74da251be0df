package folder

import (
	"slices"

	"github.com/turntable-streams/turntable/topics"
)

// SurrogateJoiner joins surrogate pairs that a producer split between two deltas, before the events are forwarded: strict JSON
// readers reject half of a pair. It holds back a high half at the end of a delta and puts it in front of the next delta of
// the block. A half without its counterpart becomes U+FFFD, as in a batch. The resulting events fold to the same batch,
// unless more than 64 blocks have a half held back: then the oldest half becomes U+FFFD. The zero value is ready to use.
// It is not safe for concurrent use.
type SurrogateJoiner struct{ held []heldHalf }

const maxHeld = 64

type heldHalf struct {
	key   string // of the block
	id    topics.Raw
	delta Event      // the event that contained the half
	half  topics.Raw // its escape sequence
}

// Append appends to dst the events that can be forwarded after e: usually e itself, none if e is a delta that contains
// only half of a pair, two if e ends the block of a half that was held back. A half that is held back aliases e.
func (j *SurrogateJoiner) Append(dst []Event, e Event) []Event {
	switch e.Type {
	case "message_delta":
		return j.delta(dst, e)
	case "message_start", "message_end":
		if id := lookup(e.data, "id"); len(j.held) > 0 && hashable(id) {
			dst = j.release(dst, string(appendKey(nil, id)))
		}
	}
	return append(dst, e)
}

// Flush appends to dst a delta with U+FFFD for every half that is held back. Call it at the end of a stream.
func (j *SurrogateJoiner) Flush(dst []Event) []Event {
	for len(j.held) > 0 {
		dst = j.release(dst, j.held[0].key)
	}
	return dst
}

// release appends U+FFFD for the half that is held back for a block.
func (j *SurrogateJoiner) release(dst []Event, key string) []Event {
	for i, h := range j.held {
		if h.key == key {
			j.held = slices.Delete(j.held, i, i+1)
			return append(dst, h.delta.withDelta(topics.Raw(`"\u`+replacement+`"`)))
		}
	}
	return dst
}

func (j *SurrogateJoiner) delta(dst []Event, e Event) []Event {
	switch {
	case len(j.held) == 0 && !escapesSurrogate(e.delta), !isString(e.delta):
		return append(dst, e)
	case !hashable(e.id): // belongs to no block
		text, _ := withoutLoneSurrogates(e.delta)
		return append(dst, e.withDelta(text))
	}
	key := string(appendKey(nil, e.id))
	text := []byte{'"'}
	for i, h := range j.held {
		if h.key == key {
			j.held = slices.Delete(j.held, i, i+1)
			text = append(text, h.half...)
			break
		}
	}
	text = append(text, e.delta[1:len(e.delta)-1]...)
	if n := trailingHalf(text); n > 0 {
		if len(j.held) == maxHeld {
			dst = j.release(dst, j.held[0].key)
		}
		j.held = append(j.held, heldHalf{key: key, id: e.id, delta: e, half: slices.Clone(text[n:])})
		if text = text[:n]; n == 1 {
			return dst
		}
	}
	text = append(text, '"')
	replaceLoneSurrogates(text)
	return append(dst, e.withDelta(text))
}

// trailingHalf returns the index of the high half at the end of a text, 0 if there is none.
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

// withDelta returns a copy of the event with another text.
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
