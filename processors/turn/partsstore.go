package turn

import (
	"bytes"
	"slices"
)

// store divides the changed fields into parts and row before the state is written. It returns the parts to write before
// the row, and the numbers of the parts to delete after it. whole are the full fields as the row will be read with them;
// late fields are included only if they are cached. A nil state means that the row is deleted.
func (a *apart) store(s *State, now int64) (write []newPart, gone []uint32, whole wholes) {
	if s == nil {
		for _, l := range a.fields {
			gone = append(gone, numbers(l.parts)...)
		}
		return nil, gone, whole
	}
	if !a.has {
		for i, f := range s.bigFields() {
			if !f.none() && a.fields[i].loaded {
				whole[i] = *f.inline
			}
		}
		return nil, nil, whole
	}
	before, next := s.bigFields(), s.NextPart
	var values [bigs]struct {
		parts  []*Part
		inline []byte
	}
	for i, f := range before {
		if !f.none() {
			values[i].parts, values[i].inline = *f.parts, *f.inline
		}
	}
	write, gone, whole = a.layOut(s, now, false)
	if a.limit == 0 || s.within(a.limit) {
		return write, gone, whole
	}
	for i, f := range before {
		if !f.none() {
			*f.parts, *f.inline = values[i].parts, values[i].inline
		}
	}
	s.NextPart = next
	return a.layOut(s, now, true)
}

// reserve returns an upper bound of the bytes that store adds to a row after apply: references to the parts that were
// loaded and to two new parts per field, the next part number, the version, and longer length prefixes.
func (a *apart) reserve() int {
	const name, rest = 16, 24
	names := 2 * bigs
	for i, l := range a.fields {
		if l.loaded && (i == history || i == tail || i == results) {
			names += len(l.parts)
		}
	}
	return names*name + rest
}

// layOut divides the large fields into parts and the bytes in the row itself. Entries that were dropped from a list still
// take space in its parts. If tight is true, such a list is rewritten as one part without them.
func (a *apart) layOut(s *State, now int64, tight bool) (write []newPart, gone []uint32, whole wholes) {
	// If the session was removed and starts again, deletions of its old parts may still be in flight. Larger numbers
	// keep the new parts safe from them.
	s.NextPart = max(a.next, s.NextPart)
	part := func(value []byte) *Part {
		if s.NextPart == 0 {
			s.NextPart = uint32(now / 1000)
		}
		// Copied, because a slice would keep the whole conversation or response in memory until the part is written.
		write = append(write, newPart{s.NextPart, bytes.Clone(value)})
		s.NextPart++
		return &Part{Number: s.NextPart - 1, Length: uint32(len(value))}
	}
	for i, f := range s.bigFields() {
		l := a.fields[i]
		switch {
		case f.none(), !l.loaded && !f.apart(): // the turn has ended, or the row was replaced
			gone = append(gone, numbers(l.parts)...)
		case l.loaded:
			var left []uint32
			whole[i], left = l.settle(f, part, tight)
			gone = append(gone, left...)
		default:
			whole[i] = l.grow(f, part)
		}
	}
	s.Version = s.format()
	return write, gone, whole
}

// settle divides a loaded field into the existing parts that it still begins with, a new part if too many bytes follow
// them, and the bytes in the row itself. It returns the full field, and the numbers of the parts that are no longer used.
func (l laid) settle(f field, part func([]byte) *Part, tight bool) (whole []byte, gone []uint32) {
	value := *f.inline
	kept, at, gone := l.keep(value, f.entry)
	if tight && f.entry != 0 && (len(kept) > 1 || lengthOf(kept) > at) {
		kept, at, gone = nil, 0, numbers(l.parts)
	}
	if len(value)-at > f.limit {
		// Parts that are less than twice as large as the bytes after them are merged with those. This keeps the parts
		// few, each about twice as large as the next, and writes each byte only a few times. Dropped entries are not
		// written again.
		end := len(value) - f.rest
		for n := len(kept) - 1; n >= 0 && min(int(kept[n].Length), at) < 2*(end-at); n-- {
			at -= min(int(kept[n].Length), at)
			gone, kept = append(gone, kept[n].Number), kept[:n]
		}
		kept = append(slices.Clip(kept), part(value[at:end]))
		at = end
	}
	whole = l.behind(lengthOf(kept)-at, value, f.entry)
	*f.parts, *f.inline = kept, whole[len(whole)-(len(value)-at):]
	return whole, gone
}

// grow moves the bytes that were appended to a field that was not loaded to a new part, if they are too many for the row.
// It returns the full field if it is cached, else nil.
func (l laid) grow(f field, part func([]byte) *Part) (whole []byte) {
	value := *f.inline
	if l.value != nil {
		whole = append(l.value, value[l.inline:]...)
		value = whole[len(whole)-len(value):]
	}
	if end := len(value) - f.rest; len(value) > f.limit {
		*f.parts = append(slices.Clip(*f.parts), part(value[:end]))
		value = value[end:]
	}
	if whole == nil { // copied, because a slice could keep a large, uncounted buffer in memory
		value = bytes.Clone(value)
	}
	*f.inline = value
	return whole
}

// format returns the lowest row version that can represent this state.
func (s *State) format() uint32 {
	switch t := s.Turn; {
	case len(s.Early) > 0 || t.holdsValues():
		return rowHeld
	case t != nil && len(t.TailParts)+len(t.ResultsParts)+len(t.Results) > 0:
		return rowTurn
	case len(s.StepsParts) > 0:
		return rowSteps
	case s.partsSize() > 0: // builds without parts would read this row as a session without history and memories
		return rowVersion
	default:
		return min(s.Version, rowVersion)
	}
}

// keep returns the parts that a new value still begins with, and the position in value at which the bytes after them
// begin; left are the numbers of the other parts. Entries may have been dropped from the front of the value. A part that
// begins with dropped entries is kept; readers drop them again. Of a part whose end has changed, the unchanged front is
// kept if it is more than half of the part: a model that removes its last turn must not cause the whole history to be
// rewritten.
func (l laid) keep(value []byte, entry int) (kept []*Part, at int, left []uint32) {
	dropped := l.dropped(value, entry)
	common := dropped + sharedLength(l.value[dropped:], value)
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
			front := &Part{Number: p.Number, Length: uint32(common - start)}
			kept, at = append(kept, front), common-dropped
		default:
			left = append(left, p.Number)
		}
	}
	return kept, at, left
}

// behind returns value preceded by the n dropped bytes that the first kept part still contains.
func (l laid) behind(n int, value []byte, entry int) []byte {
	if n == 0 {
		return value
	}
	at := l.dropped(value, entry)
	if &value[0] == &l.value[at] { // same memory: the dropped bytes still precede it
		return l.value[at-n : at+len(value)]
	}
	return append(append(roomFor(n+len(value), entry), l.value[at-n:at]...), value...)
}

// dropped returns how many bytes were dropped from the front of the old value, if the new value begins with the rest of
// it; else 0.
func (l laid) dropped(value []byte, entry int) int {
	if entry == 0 {
		return 0
	}
	// Compare the whole rest and not one entry, because steps may be equal.
	for at := 0; at+entry <= len(l.value); at += entry {
		if bytes.HasPrefix(value, l.value[at:]) {
			return at
		}
	}
	return 0
}
