package turn

import (
	"bytes"
	"fmt"
	"slices"
)

// A row is written with every event of its session. What is big in it changes rarely, and then at its end: the history
// by the answers, the memories and the steps by what was seen last. So the older bytes of these fields stand apart, in
// parts of the row that are written once (R10); the row names them in order, and has what came since. A part is never
// changed: what replaces it has a new number.

// apart is a row's fields as they were found.
type apart struct {
	fields [bigs]laid
	next   uint32
	has    bool // the table takes parts
}

// laid is how a field was found: the parts it begins with, and its whole value where it was loaded.
type laid struct {
	parts  []*Part
	value  []byte // also of a history that is known but was not asked for
	loaded bool
}

// newPart is a part to be written.
type newPart struct {
	number uint32
	value  []byte
}

// field is one of the fields of a row that may stand apart.
type field struct {
	parts  *[]*Part
	inline *[]byte
	// entry is the size of what the field is a list of, where its front is dropped entry by entry; else 0.
	entry int
	// limit is how many bytes stand in the row itself, at most; rest is how many of them do where more came.
	limit, rest int
}

// The fields in the order of apart.
const (
	history = iota
	causes
	requests
	calls
	steps
	bigs // is how many there are
)

// wholes are the values of the fields, whole.
type wholes [bigs][]byte

const (
	// historyInline is small beside a history, and large enough that most turns write no part.
	historyInline = 2 << 10
	memoryInline  = 32 * memorySize
	stepsInline   = 12 * stepSize
	// bracket is the end of an array: it is the one byte that an answer behind it replaces.
	bracket = 1
)

func (s *State) bigFields() [bigs]field {
	return [bigs]field{
		history:  {&s.HistoryParts, &s.History, 0, historyInline, bracket},
		causes:   {&s.CausesParts, &s.Causes, memorySize, memoryInline, 0},
		requests: {&s.RequestsParts, &s.Requests, memorySize, memoryInline, 0},
		calls:    {&s.CallsParts, &s.Calls, memorySize, memoryInline, 0},
		steps:    {&s.StepsParts, &s.Steps, stepSize, stepsInline, 0},
	}
}

// memory is room for the whole field: for a list with what comes next, for a history, which is read and not added to,
// no more than it has.
func (f field) memory(length int) []byte {
	if f.entry == 0 {
		return make([]byte, 0, length)
	}
	return roomFor(length, f.entry)
}

// partsSize is how many bytes of a row stand apart and are not loaded.
func (s *State) partsSize() (size int) {
	for _, f := range s.bigFields() {
		size += lengthOf(*f.parts)
	}
	return size
}

func lengthOf(parts []*Part) (length int) {
	for _, p := range parts {
		length += int(p.Length)
	}
	return length
}

// load brings the fields of a state together, all of them or all but the history. It is an error where a part is not
// what the row says. known are the fields of a state that was kept, or nil.
// A history that is not needed stays apart even where it is known: outcomes do not depend on what is kept.
func (a *apart) load(s *State, withHistory bool, from found, known *wholes) error {
	a.has, a.next = from.HasParts(), s.NextPart
	for i, f := range s.bigFields() {
		l := &a.fields[i]
		l.parts, l.loaded = *f.parts, i != history || withHistory || len(*f.parts) == 0
		if !l.loaded {
			if known != nil {
				l.value = known[i]
			}
			continue
		}
		if known != nil && (i != history || known[i] != nil) {
			*f.inline, *f.parts = known[i], nil
		} else if len(l.parts) > 0 {
			whole := f.memory(lengthOf(l.parts) + len(*f.inline))
			for _, p := range l.parts {
				if !a.has {
					return errNoParts
				}
				value, err := from.Part(p.Number)
				if err != nil {
					return err
				}
				if len(value) < int(p.Length) {
					return fmt.Errorf("%w: part %d has %d bytes, the row says %d", errBroken, p.Number, len(value), p.Length)
				}
				whole = append(whole, value[:p.Length]...)
			}
			*f.inline, *f.parts = append(whole, *f.inline...), nil
		}
		l.value = *f.inline
	}
	s.Steps = lastSteps(s.Steps) // its first part may have some that were dropped
	return nil
}

// store takes what has become of the fields apart again, before the state is written. It returns the parts to be written
// ahead of the row, and the numbers of those that are to go behind it; whole are the fields as the row will be found with
// them, the history only where it is known. A nil state is a row that goes.
func (a *apart) store(s *State, now int64) (write []newPart, gone []uint32, whole wholes) {
	if s == nil {
		for _, l := range a.fields {
			for _, p := range l.parts {
				gone = append(gone, p.Number)
			}
		}
		return nil, gone, whole
	}
	if !a.has {
		for i, f := range s.bigFields() {
			if a.fields[i].loaded {
				whole[i] = *f.inline
			}
		}
		return nil, nil, whole
	}
	// Numbers of a session that was removed may still be on their way out: those of its next life are larger.
	s.NextPart = max(a.next, s.NextPart)
	for i, f := range s.bigFields() {
		l := a.fields[i]
		if !l.loaded {
			if len(*f.parts) == 0 { // the row was made anew
				for _, p := range l.parts {
					gone = append(gone, p.Number)
				}
			} else {
				whole[i] = l.value
			}
			continue
		}
		value := *f.inline
		kept, at, left := l.keep(value, f.entry)
		gone = append(gone, left...)
		if len(value)-at > f.limit {
			// Parts that are not much larger than what comes after them become one with it: so there are few of them,
			// each about twice the next, and a byte is written a few times in all. What was dropped is not written again.
			end := len(value) - f.rest
			for n := len(kept) - 1; n >= 0 && min(int(kept[n].Length), at) < 2*(end-at); n-- {
				at -= min(int(kept[n].Length), at)
				gone, kept = append(gone, kept[n].Number), kept[:n]
			}
			if s.NextPart == 0 {
				s.NextPart = uint32(now / 1000)
			}
			// A copy: it would keep the whole conversation, or the response that it came in, in memory until it is written.
			write = append(write, newPart{s.NextPart, bytes.Clone(value[at:end])})
			kept = append(slices.Clip(kept), &Part{Number: s.NextPart, Length: uint32(end - at)})
			at = end
			s.NextPart++
		}
		whole[i] = l.behind(lengthOf(kept)-at, value, f.entry)
		*f.parts, *f.inline = kept, whole[i][len(whole[i])-(len(value)-at):]
	}
	s.Version = s.format()
	return write, gone, whole
}

// format is the version of a row with these parts.
func (s *State) format() uint32 {
	switch {
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
