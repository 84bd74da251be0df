package folder

import (
	"strconv"
	"unicode/utf8"

	"github.com/turntable-streams/turntable/topics"
)

// Snapshot returns the folder's state as a log, from which Resume makes an equal folder. Logs of later events can be
// appended to it.
func (f *Folder) Snapshot() Log {
	var w logWriter
	for i := range f.messages {
		f.snapshotMessage(&w, i)
	}
	// Requests follow the messages, because a tool result after a request would answer it.
	for i := range f.requests {
		r := &f.requests[i]
		w.put(op{kind: opRequest, f: [6]topics.Raw{r.data, flag(r.answered)}})
	}
	if f.usage != nil {
		w.put(op{kind: opUsage, f: [6]topics.Raw{f.usage}})
	}
	if f.failed {
		w.put(op{kind: opError, f: [6]topics.Raw{f.failure}})
	}
	if f.done {
		w.put(op{kind: opDone, f: [6]topics.Raw{f.stopReason}})
	}
	if f.malformed > 0 {
		w.put(op{kind: opMalformedCount, f: [6]topics.Raw{topics.Raw(strconv.Itoa(f.malformed))}})
	}
	return w.log
}

func (f *Folder) snapshotMessage(w *logWriter, i int) {
	m := &f.messages[i]
	switch m.kind {
	case opMessage:
		w.put(op{kind: opMessage, f: [6]topics.Raw{m.payload}})
	case opStart:
		w.put(op{kind: opStart, f: [6]topics.Raw{m.id}})
		if m.text.length > 0 {
			w.put(op{kind: opDelta, f: [6]topics.Raw{m.id, m.text.appendTo(nil)}})
		}
		// Of several blocks with the same id only the last can be open.
		if at, ok := f.block(m.id); !ok || at != i {
			w.put(op{kind: opEnd, f: [6]topics.Raw{m.id}})
		}
	case opCall:
		w.put(op{kind: opCall, f: [6]topics.Raw{m.id, m.name, m.payload}})
	case opResult:
		w.put(op{kind: opResult, f: [6]topics.Raw{m.id, m.payload, m.isError, m.data, m.render, flag(m.denied)}})
	}
}

// Resume returns a folder with the state of a snapshot. Options are not part of a snapshot. It fails as Folder.AddLog
// does.
func Resume(snapshot Log, opts ...Option) (*Folder, error) {
	f := NewFolder(opts...)
	if err := f.AddLog(snapshot); err != nil {
		return nil, err
	}
	return f, nil
}

func flag(set bool) topics.Raw {
	if set {
		return topics.Raw("true")
	}
	return nil
}

// isValid reports whether the values of an op are JSON. A damaged or foreign log can contain other bytes.
func (o *op) isValid() bool {
	switch o.kind {
	case opMalformed:
		return true
	case opDelta:
		return soundValue(o.f[0]) && soundText(o.f[1])
	case opStart, opCall, opNoDelta:
		if !hashable(o.f[0]) {
			return false
		}
	}
	for i := range arity(o.kind) {
		if !soundValue(o.f[i]) {
			return false
		}
	}
	return true
}

func soundValue(v topics.Raw) bool {
	return v == nil || len(trimSpace(v)) == len(v) && utf8.Valid(v) && valid(v)
}

// soundText reports whether v is the inside of a JSON string.
func soundText(v []byte) bool {
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case c == '"', c < ' ':
			return false
		case c == '\\':
			n := escapeLength(v[i:])
			if n == 0 {
				return false
			}
			i += n - 1
		}
	}
	return utf8.Valid(v)
}
