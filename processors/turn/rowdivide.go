package turn

import (
	"bytes"
	"slices"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
)

// divide divides the changed fields into parts and row before the state is written. It returns the parts to write before
// the row, and the numbers of the parts to delete after it. full are the full fields as the row will be read with them;
// lazy fields are included only if they were loaded or cached. A nil state means that the row is deleted.
func (l *rowLayout) divide(s *turnrow.State, now int64) (write []RowPart, unused []uint32, full fullValues) {
	if s == nil {
		for _, f := range l.fields {
			unused = append(unused, numbersOf(f.parts)...)
		}
		return nil, unused, full
	}
	if l.parts == nil {
		for i, f := range stateLargeFields(s) {
			if !f.absent() && !f.hasParts() {
				full[i] = *f.inline
			}
		}
		return nil, nil, full
	}
	before, next := stateLargeFields(s), s.NextPart
	var values [largeFields]struct {
		parts  []*turnrow.Part
		inline []byte
	}
	for i, f := range before {
		if !f.absent() {
			values[i].parts, values[i].inline = *f.parts, *f.inline
		}
	}
	write, unused, full = l.divideFields(s, now, false)
	if l.limit == 0 || within(s, l.limit) {
		return write, unused, full
	}
	for i, f := range before {
		if !f.absent() {
			*f.parts, *f.inline = values[i].parts, values[i].inline
		}
	}
	s.NextPart = next
	return l.divideFields(s, now, true)
}

// divideFields divides the large fields into parts and the bytes in the row itself. Entries that were dropped from a list
// still take space in its parts. If compact is true, such a list is rewritten as one part without them.
func (l *rowLayout) divideFields(s *turnrow.State, now int64, compact bool) (write []RowPart, unused []uint32, full fullValues) {
	// If the session was removed and starts again, deletions of its old parts may still be in flight. Larger numbers
	// keep the new parts safe from them.
	s.NextPart = max(l.next, s.NextPart)
	newPart := func(value []byte) *turnrow.Part {
		if s.NextPart == 0 {
			s.NextPart = uint32(now / 1000)
		}
		// Copied, because a slice would keep the whole conversation or response in memory until the part is written.
		write = append(write, RowPart{s.NextPart, bytes.Clone(value)})
		s.NextPart++
		return &turnrow.Part{Number: s.NextPart - 1, Length: uint32(len(value))}
	}
	for i, f := range stateLargeFields(s) {
		at := l.fields[i]
		if !at.loaded && !f.hasParts() { // the turn has ended, or the row was replaced: the field begins anew
			unused = append(unused, numbersOf(at.parts)...)
			at = fieldLayout{loaded: true}
		}
		switch {
		case f.absent():
			if at.loaded {
				unused = append(unused, numbersOf(at.parts)...)
			}
		case at.loaded:
			var left []uint32
			full[i], left = at.divide(f, newPart, compact)
			unused = append(unused, left...)
		default:
			unused = append(unused, at.removed(f)...)
			full[i] = at.extend(f, newPart)
		}
	}
	if len(s.HiddenParts) > 0 {
		full[hidden] = nil // no event reads it
	}
	s.Version = formatOf(s)
	return write, unused, full
}

// divide divides a loaded field into the existing parts that it still begins with, a new part if too many bytes follow
// them, and the bytes in the row itself. It returns the full field, and the numbers of the parts that are no longer used.
func (l fieldLayout) divide(f largeField, newPart func([]byte) *turnrow.Part, compact bool) (full []byte, unused []uint32) {
	value := *f.inline
	kept, at, unused := l.keep(value, f.entry)
	if compact && f.entry != 0 && (len(kept) > 1 || lengthOf(kept) > at) {
		kept, at, unused = nil, 0, numbersOf(l.parts)
	}
	if len(value)-at > f.limit {
		// Parts that are less than twice as large as the bytes after them are merged with those. This keeps the parts
		// few, each about twice as large as the next, and writes each byte only a few times. Dropped entries are not
		// written again.
		end := len(value) - f.rest
		for n := len(kept) - 1; n >= 0 && min(int(kept[n].Length), at) < 2*(end-at); n-- {
			at -= min(int(kept[n].Length), at)
			unused, kept = append(unused, kept[n].Number), kept[:n]
		}
		kept = append(slices.Clip(kept), newPart(value[at:end]))
		at = end
	}
	full = l.withDropped(lengthOf(kept)-at, value, f.entry)
	*f.parts, *f.inline = kept, full[len(full)-(len(value)-at):]
	return full, unused
}

// removed returns the numbers of the parts that were removed from the front of a field that was not loaded.
func (l fieldLayout) removed(f largeField) []uint32 {
	return numbersOf(l.parts[:len(l.parts)-len(*f.parts)])
}

// extend moves the bytes that were appended to a field that was not loaded to a new part, if they are too many for the row.
// It returns the full field if it is cached, else nil.
func (l fieldLayout) extend(f largeField, newPart func([]byte) *turnrow.Part) (full []byte) {
	value := *f.inline
	if l.full != nil {
		full = append(l.full, value[l.inline:]...)
		value = full[len(full)-len(value):]
	}
	if end := len(value) - f.rest; len(value) > f.limit {
		*f.parts = append(slices.Clip(*f.parts), newPart(value[:end]))
		value = value[end:]
	}
	if full == nil { // copied, because a slice could keep a large, uncounted buffer in memory
		value = bytes.Clone(value)
	}
	*f.inline = value
	return full
}

// keep returns the parts that a new value still begins with, and the position in value at which the bytes after them
// begin; left are the numbers of the other parts. Entries may have been dropped from the front of the value. A part that
// begins with dropped entries is kept; readers drop them again. Of a part whose end has changed, the unchanged front is
// kept if it is more than half of the part: a model that removes its last turn must not cause the whole history to be
// rewritten.
func (l fieldLayout) keep(value []byte, entry int) (kept []*turnrow.Part, at int, left []uint32) {
	dropped := l.dropped(value, entry)
	common := dropped + sharedLength(l.full[dropped:], value)
	first, end := 0, 0
	for i, p := range l.parts {
		start := end
		end += int(p.Length)
		switch {
		case end > dropped && end <= common: // these parts are adjacent
			if len(kept) == 0 {
				first = i
			}
			kept, at = l.parts[first:i+1:i+1], end-dropped
		case end > common && 2*(common-start) > int(p.Length):
			front := &turnrow.Part{Number: p.Number, Length: uint32(common - start)}
			kept, at = append(kept, front), common-dropped
		default:
			left = append(left, p.Number)
		}
	}
	return kept, at, left
}

// withDropped returns value preceded by the n dropped bytes that the first kept part still contains.
func (l fieldLayout) withDropped(n int, value []byte, entry int) []byte {
	if n == 0 {
		return value
	}
	at := l.dropped(value, entry)
	if &value[0] == &l.full[at] { // same memory: the dropped bytes still precede it
		return l.full[at-n : at+len(value)]
	}
	return append(append(roomFor(n+len(value), entry), l.full[at-n:at]...), value...)
}

// dropped returns how many bytes were dropped from the front of the old value, if the new value begins with the rest of
// it; else 0.
func (l fieldLayout) dropped(value []byte, entry int) int {
	if entry == 0 {
		return 0
	}
	// Compare the whole rest and not one entry, because steps may be equal.
	for at := 0; at+entry <= len(l.full); at += entry {
		if bytes.HasPrefix(value, l.full[at:]) {
			return at
		}
	}
	return 0
}
