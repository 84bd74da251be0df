package folder

import (
	"encoding/binary"

	"github.com/turntable-streams/turntable/topics"
)

// Log is a compact encoding of a turn's events that folds to the same batch. Consecutive deltas of one block are one
// entry, as are consecutive updates of one tool call; of consecutive usage or error events the last is kept. Events that
// do not change a batch (thoughts, data, unknown types) are left out. A turn can be split into several logs between any
// two events: AddLog of each log in order gives the same batch as AddLog of their concatenation.
//
// Format: for each entry a letter for its kind, then each field of that kind as its length plus one in an unsigned varint
// (0 is an absent field), followed by its bytes.
type Log []byte

// Append returns a copy of the log with one more event. It does not change l. Its cost is proportional to the length of
// l, so begin a new log when l becomes long.
func (l Log) Append(e Event) Log {
	o := opOf(e)
	if o.kind == opNone {
		return l
	}
	size := len(l) + 1
	for _, f := range o.f {
		size += len(f) + binary.MaxVarintLen32
	}
	w := logWriter{log: append(make(Log, 0, size), l...)}
	w.seek()
	w.append(o)
	return w.log
}

// Compact returns the log of the events.
func Compact(events ...Event) Log {
	var w logWriter
	for _, e := range events {
		w.append(opOf(e))
	}
	return w.log
}

// AddLog folds the events of a log. It fails with ErrLog for bytes that are not a log, and with Strict as Add does. When an
// entry fails, those before it have been folded.
func (f *Folder) AddLog(l Log) error {
	for len(l) > 0 {
		o, rest, ok := l.next()
		if !ok || !o.isValid() {
			return ErrLog
		}
		l = rest
		if err := f.apply(o); err != nil {
			return err
		}
	}
	return nil
}

// next decodes the log's first entry. Its fields alias the log.
func (l Log) next() (o op, rest Log, ok bool) {
	o.kind = l[0]
	n := arity(o.kind)
	if n == 0 {
		return op{}, nil, false
	}
	rest = l[1:]
	for i := range n {
		length, used := binary.Uvarint(rest)
		if used <= 0 || length > uint64(len(rest)-used)+1 {
			return op{}, nil, false
		}
		rest = rest[used:]
		if length > 0 {
			end := int(length) - 1
			o.f[i] = topics.Raw(rest[:end:end])
			rest = rest[end:]
		}
	}
	return o, rest, true
}

func appendField(dst []byte, v topics.Raw) []byte {
	if v == nil {
		return append(dst, 0)
	}
	return append(binary.AppendUvarint(dst, uint64(len(v))+1), v...)
}
