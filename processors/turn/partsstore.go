package turn

import (
	"bytes"
	"slices"
)

// store takes what has become of the fields apart again, before the state is written. It returns the parts to be written
// ahead of the row, and the numbers of those that are to go behind it; whole are the fields as the row will be found with
// them, the late ones only where they are known. A nil state is a row that goes.
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

// reserve bounds what store adds to a row of apply's: the names of parts, of those that were found and are loaded, and
// of two new ones a field; the number of the next one, the format and the longer lengths around them.
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

// layOut divides the big fields into parts and what stands in the row. A part of a list of which entries were dropped
// still has their bytes. Where the row is tight, such a list is written anew, as one part, without them.
func (a *apart) layOut(s *State, now int64, tight bool) (write []newPart, gone []uint32, whole wholes) {
	// Numbers of a session that was removed may still be on their way out: those of its next life are larger.
	s.NextPart = max(a.next, s.NextPart)
	part := func(value []byte) *Part {
		if s.NextPart == 0 {
			s.NextPart = uint32(now / 1000)
		}
		// A copy: it would keep the whole conversation, or the response that it came in, in memory until it is written.
		write = append(write, newPart{s.NextPart, bytes.Clone(value)})
		s.NextPart++
		return &Part{Number: s.NextPart - 1, Length: uint32(len(value))}
	}
	for i, f := range s.bigFields() {
		l := a.fields[i]
		switch {
		case f.none(), !l.loaded && !f.apart(): // the turn is over, or the row was made anew
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

// settle takes a field apart that was loaded: into the parts that it still begins with, a new one where there is too much
// behind them, and what stands in the row. It returns the whole field, and the parts that are left over.
func (l laid) settle(f field, part func([]byte) *Part, tight bool) (whole []byte, gone []uint32) {
	value := *f.inline
	kept, at, gone := l.keep(value, f.entry)
	if tight && f.entry != 0 && (len(kept) > 1 || lengthOf(kept) > at) {
		kept, at, gone = nil, 0, numbers(l.parts)
	}
	if len(value)-at > f.limit {
		// Parts that are not much larger than what comes after them become one with it: so there are few of them, each
		// about twice the next, and a byte is written a few times in all. What was dropped is not written again.
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

// grow makes what was added to a field that was not loaded a part of its own, where it is too much for the row. It
// returns the whole field where that is known.
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
	if whole == nil { // what came may be large, and its memory is counted nowhere
		value = bytes.Clone(value)
	}
	*f.inline = value
	return whole
}

// format is the version of a row with these parts.
func (s *State) format() uint32 {
	switch t := s.Turn; {
	case len(s.Early) > 0 || t.holdsValues():
		return rowHeld
	case t != nil && len(t.TailParts)+len(t.ResultsParts)+len(t.Results) > 0:
		return rowTurn
	case len(s.StepsParts) > 0:
		return rowSteps
	case s.partsSize() > 0: // a build older than that would take it for a session without a past
		return rowVersion
	default:
		return min(s.Version, rowVersion)
	}
}

// keep finds the parts that a new value still begins with, where whole entries may be gone from its front, and where
// what follows them begins; left are the numbers of the others. A part whose first entries are gone is kept: what was
// dropped is dropped again when it is met. Of a part whose end has changed the front counts, if that is most of it: a
// model that forgets its last turn must not cost the whole history.
func (l laid) keep(value []byte, entry int) (kept []*Part, at int, left []uint32) {
	dropped := l.dropped(value, entry)
	common := dropped + sharedLength(l.value[dropped:], value)
	first, end := 0, 0
	for i, p := range l.parts {
		start := end
		end += int(p.Length)
		switch {
		case end > dropped && end <= common: // all of these stand side by side
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

// behind is a value with what is before it in the first part that is kept: n bytes, which were dropped.
func (l laid) behind(n int, value []byte, entry int) []byte {
	if n == 0 {
		return value
	}
	at := l.dropped(value, entry)
	if &value[0] == &l.value[at] { // it is still where it was, behind what was dropped
		return l.value[at-n : at+len(value)]
	}
	return append(append(roomFor(n+len(value), entry), l.value[at-n:at]...), value...)
}

// dropped is how many bytes of the old value are gone from the front of a new one that begins with the rest of it: 0
// where nothing is left of it.
func (l laid) dropped(value []byte, entry int) int {
	if entry == 0 {
		return 0
	}
	// One entry does not tell: steps may be equal.
	for at := 0; at+entry <= len(l.value); at += entry {
		if bytes.HasPrefix(value, l.value[at:]) {
			return at
		}
	}
	return 0
}
