package folder

import (
	"bytes"
	"encoding/binary"
)

// logWriter appends events to a log. It merges an event into the last entry if possible.
type logWriter struct {
	log  Log
	last int // index of the last entry, if open is set
	open op  // the last entry; it aliases log
}

// seek finds the last entry. A damaged log has none; AddLog reports it.
func (w *logWriter) seek() {
	for rest := w.log; len(rest) > 0; {
		w.last = len(w.log) - len(rest)
		var ok bool
		if w.open, rest, ok = rest.next(); !ok {
			w.open = op{}
			return
		}
	}
}

func (w *logWriter) append(o op) {
	switch same := bytes.Equal(o.f[0], w.open.f[0]) && (o.f[0] == nil) == (w.open.f[0] == nil); {
	case o.kind == opNone:
	case o.kind == opDelta && w.open.kind == opDelta && same:
		w.extend(o.f[1])
	case o.kind == opCall && w.open.kind == opCall && same && !isNull(o.f[0]):
		// An update of the preceding call replaces its input only.
		o.f[1] = bytes.Clone(w.open.f[1])
		w.log = w.log[:w.last]
		w.put(o)
	case o.kind == w.open.kind && (o.kind == opUsage || o.kind == opError):
		w.log = w.log[:w.last]
		w.put(o)
	default:
		w.put(o)
	}
}

func (w *logWriter) put(o op) {
	w.last = len(w.log)
	w.log = append(w.log, o.kind)
	for i := range arity(o.kind) {
		w.log = appendField(w.log, o.f[i])
	}
	w.open, _, _ = w.log[w.last:].next()
}

// extend adds to the text of the last entry, a delta. The text is at the end of the log, its length directly before it.
func (w *logWriter) extend(text []byte) {
	old := len(w.open.f[1])
	at := len(w.log) - old
	before, after := uvarintLen(old+1), uvarintLen(old+len(text)+1)
	w.log = append(w.log, text...)
	if after > before {
		w.log = append(w.log, make([]byte, after-before)...)
		copy(w.log[at+after-before:], w.log[at:len(w.log)-(after-before)])
	}
	binary.PutUvarint(w.log[at-before:], uint64(old+len(text))+1)
	w.open, _, _ = w.log[w.last:].next()
}

func uvarintLen(n int) int {
	var b [binary.MaxVarintLen64]byte
	return binary.PutUvarint(b[:], uint64(n))
}
