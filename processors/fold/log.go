package fold

import (
	"encoding/binary"

	"github.com/turntable-streams/turntable/topics"
)

// Log is a turn's events in a small form that folds to the same batch: a run of deltas of one block is one entry,
// refreshes of one call that follow one another are one, of a run of usage totals or errors the last is kept, and what
// fold does not read (thoughts, data, unknown types) is left out. It grows event by event and can be cut between any
// two: a turn kept as logs a, b and c folds by AddLog(a), AddLog(b), AddLog(c), as by their concatenation.
//
// Its form: for each entry a letter, then each field of that kind of entry as its length, an unsigned varint plus one
// (0 is an absent field), and its bytes.
type Log []byte

// Append returns the log with one more event, and leaves l as it is. It copies the log, and walks it to find its last
// entry: keep what is appended to short, and put it aside when it is full.
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

// Compact is the log of the events.
func Compact(events ...Event) Log {
	var w logWriter
	for _, e := range events {
		w.append(opOf(e))
	}
	return w.log
}

// AddLog folds the events that a log stands for. It fails with ErrLog for bytes that are none, and with Strict as Add
// does; the entries before the fault are folded then.
func (f *Folder) AddLog(l Log) error {
	for len(l) > 0 {
		o, rest, ok := l.next()
		if !ok || !o.sound() {
			return ErrLog
		}
		l = rest
		if err := f.apply(o); err != nil {
			return err
		}
	}
	return nil
}

// next reads the log's first entry. Its fields alias the log.
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
