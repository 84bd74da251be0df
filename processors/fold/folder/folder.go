package folder

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/turntable-streams/turntable/topics"
)

// Folder folds a turn event by event. It copies the values it keeps. It is not safe for concurrent use.
type Folder struct {
	settings
	messages []message
	open     map[string]int // key of an open block's id -> index of its message
	calls    map[string]int // key of a call's id -> index of its message
	requests []request
	awaited  map[string][]int // key of an answer -> indexes of the requests that it answers
	key      []byte           // reused buffer

	// The block of the last delta, which is usually also the block of the next one. last is -1 for none.
	lastID topics.Raw
	last   int

	done       bool
	stopReason topics.Raw
	failed     bool
	failure    topics.Raw
	usage      topics.Raw
	malformed  int
	size       int
}

// NewFolder returns a folder without events.
func NewFolder(opts ...Option) *Folder {
	f := &Folder{open: map[string]int{}, calls: map[string]int{}, awaited: map[string][]int{}, last: -1}
	for _, opt := range opts {
		opt(&f.settings)
	}
	return f
}

// Add folds the next event. With Strict it fails with ErrMalformed for a malformed event and does not change the folder.
// Without Strict it never fails.
func (f *Folder) Add(e Event) error { return f.apply(opOf(e)) }

// AddJSON folds the events of a JSON array, each in either encoding. It fails with ErrEvents for bytes that are not a JSON
// array, with ErrDepth for data nested deeper than MaxDepth, and with Strict as Add does. An element that is not an object
// is a malformed event. When an element fails, those before it have been folded.
func (f *Folder) AddJSON(events topics.Raw) error {
	events = trimSpace(events)
	if !isArray(events) || !utf8.Valid(events) || !valid(events) {
		return ErrEvents
	}
	for raw := range elements(events) {
		if err := f.addRaw(raw); err != nil {
			return err
		}
	}
	return nil
}

// addRaw decodes and folds an event that is valid JSON.
func (f *Folder) addRaw(raw topics.Raw) error {
	if !isObject(trimSpace(raw)) {
		return f.apply(malformedOp("not an object"))
	}
	e, err := decodeEvent(raw, true)
	if err != nil {
		return err
	}
	return f.Add(e)
}

func (f *Folder) apply(o op) error {
	switch o.kind {
	case opDelta:
		f.delta(o.f[0], o.f[1])
	case opNoDelta:
		if _, ok := f.block(o.f[0]); ok {
			return f.countMalformed("delta is not a string")
		}
	case opMessage:
		f.append(message{kind: opMessage, payload: o.f[0]})
	case opStart:
		f.append(message{kind: opStart, id: o.f[0]})
		f.open[f.keyOf(o.f[0])] = len(f.messages) - 1
		f.lastID, f.last = f.messages[len(f.messages)-1].id, len(f.messages)-1
	case opEnd:
		if !hashable(o.f[0]) {
			if len(f.open) > 0 {
				return f.countMalformed("id is an array or object")
			}
			return nil
		}
		delete(f.open, f.keyOf(o.f[0]))
		f.last = -1
	case opCall:
		f.call(o)
	case opResult:
		f.result(o)
	case opRequest, opResponse:
		return f.interaction(o)
	case opUsage:
		f.keep(&f.usage, o.f[0])
	case opError:
		f.failed = true
		f.keep(&f.failure, o.f[0])
	case opDone:
		f.done = true
		f.keep(&f.stopReason, o.f[0])
	case opMalformed:
		return f.countMalformed(string(o.f[0]))
	case opMalformedCount:
		n, _ := strconv.Atoi(string(o.f[0]))
		f.malformed += max(n, 0)
	}
	return nil
}

// countMalformed counts a malformed event. With Strict it returns an error instead.
func (f *Folder) countMalformed(what string) error {
	if f.strict {
		return fmt.Errorf("%w: %s", ErrMalformed, what)
	}
	f.malformed++
	return nil
}

func (f *Folder) delta(id, text topics.Raw) {
	i := f.last
	if i < 0 || id == nil || !bytes.Equal(id, f.lastID) {
		var ok bool
		if i, ok = f.block(id); !ok {
			return
		}
		f.lastID, f.last = f.messages[i].id, i
	}
	f.messages[i].text.append(text)
	f.size += len(text)
}

// block returns the index of an open block's message.
func (f *Folder) block(id topics.Raw) (i int, ok bool) {
	f.key = appendKey(f.key[:0], id)
	i, ok = f.open[string(f.key)]
	return i, ok
}

func (f *Folder) keyOf(id topics.Raw) string {
	f.key = appendKey(f.key[:0], id)
	return string(f.key)
}

func (f *Folder) call(o op) {
	id := o.f[0]
	if isNull(id) {
		f.append(message{kind: opCall, name: o.f[1], payload: o.f[2]})
		return
	}
	key := f.keyOf(id)
	if i, seen := f.calls[key]; seen {
		f.keep(&f.messages[i].payload, o.f[2])
		return
	}
	f.append(message{kind: opCall, id: id, name: o.f[1], payload: o.f[2]})
	f.calls[key] = len(f.messages) - 1
}

func (f *Folder) result(o op) {
	m := message{kind: opResult, id: o.f[0], payload: o.f[1], isError: o.f[2], denied: o.f[5] != nil}
	if !isNull(o.f[3]) {
		m.data = o.f[3]
	}
	if !isNull(o.f[4]) {
		m.render = o.f[4]
	}
	f.append(m)
	if !isNull(m.id) && hashable(m.id) {
		f.answer('r', m.id)
	}
}

// append adds a message and copies its values, which alias an event.
func (f *Folder) append(m message) {
	for _, v := range []*topics.Raw{&m.id, &m.name, &m.payload, &m.isError, &m.data, &m.render} {
		*v = bytes.Clone(*v)
		f.size += len(*v)
	}
	f.size += messageSize
	f.messages = append(f.messages, m)
}

// keep replaces a value of the folder by a copy of v.
func (f *Folder) keep(held *topics.Raw, v topics.Raw) {
	f.size += len(v) - len(*held)
	*held = bytes.Clone(v)
}

// StopReason returns the stop reason of the last done event; nil for none and for null.
func (f *Folder) StopReason() topics.Raw {
	if isNull(f.stopReason) {
		return nil
	}
	return bytes.Clone(f.stopReason)
}

// Size returns how many bytes of text and payload the folder holds, plus a fixed cost for each message and request.
func (f *Folder) Size() int { return f.size }
