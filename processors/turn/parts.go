package turn

import "fmt"

// A row is written with every event of its session. What is big in it changes rarely, and then at its end: the history
// by the answers, the tail of the open turn by its responses, its results by those that come, the memories and the steps
// by what was seen last. So the older bytes of these fields stand apart, in parts of the row that are written once (R10);
// the row names them in order, and has what came since. A part is never changed: what replaces it has a new number.

// apart is a row's fields as they were found.
type apart struct {
	fields [bigs]laid
	next   uint32
	has    bool // the table takes parts
	limit  int  // how many bytes the row may have with its parts; 0 for any number
}

// laid is how a field was found: the parts it begins with, and its whole value where it was loaded.
type laid struct {
	parts  []*Part
	inline int    // how many bytes stand in the row
	value  []byte // also of a late field that is known but was not asked for
	loaded bool
}

// newPart is a part to be written.
type newPart struct {
	number uint32
	value  []byte
}

// field is one of the fields of a row that may stand apart. The zero value is one of a turn where none is open.
type field struct {
	parts  *[]*Part
	inline *[]byte
	// late is a field that is loaded where the event is likely to need it, and may be added to where it is not.
	late bool
	// entry is the size of what the field is a list of, where its front is dropped entry by entry; else 0.
	entry int
	// limit is how many bytes stand in the row itself, at most; rest is how many of them do where more came.
	limit, rest int
}

// The fields in the order of apart.
const (
	history = iota
	tail
	results
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
	resultsInline = 2 << 10
	memoryInline  = 32 * memorySize
	stepsInline   = 12 * stepSize
	// bracket is the end of an array: it is the one byte that an answer behind it replaces.
	bracket = 1
)

func (s *State) bigFields() [bigs]field {
	fields := [bigs]field{
		history:  {&s.HistoryParts, &s.History, true, 0, historyInline, bracket},
		causes:   {&s.CausesParts, &s.Causes, false, memorySize, memoryInline, 0},
		requests: {&s.RequestsParts, &s.Requests, false, memorySize, memoryInline, 0},
		calls:    {&s.CallsParts, &s.Calls, false, memorySize, memoryInline, 0},
		steps:    {&s.StepsParts, &s.Steps, false, stepSize, stepsInline, 0},
	}
	if t := s.Turn; t != nil {
		fields[tail] = field{&t.TailParts, &t.Tail, true, 0, historyInline, bracket}
		fields[results] = field{&t.ResultsParts, &t.Results, true, 0, resultsInline, 0}
	}
	return fields
}

func (f field) none() bool { return f.parts == nil }

// apart reports whether some of the field stands apart.
func (f field) apart() bool { return !f.none() && len(*f.parts) > 0 }

// memory is room for the whole field: for a list with what comes next, for any other, which is read and not added to, no
// more than it has.
func (f field) memory(length int) []byte {
	if f.entry == 0 {
		return make([]byte, 0, length)
	}
	return roomFor(length, f.entry)
}

// partsSize is how many bytes of a row stand apart and are not loaded.
func (s *State) partsSize() (size int) {
	for _, f := range s.bigFields() {
		if f.apart() {
			size += lengthOf(*f.parts)
		}
	}
	return size
}

func lengthOf(parts []*Part) (length int) {
	for _, p := range parts {
		length += int(p.Length)
	}
	return length
}

// load brings the fields of a state together, all of them or all but the late ones. It is an error where a part is not
// what the row says. known are the fields of a state that was kept, or nil.
// A field that is not needed stays apart even where it is known: outcomes do not depend on what is kept.
func (a *apart) load(s *State, late bool, from found, known *wholes) error {
	a.has, a.next = from.HasParts(), s.NextPart
	for i, f := range s.bigFields() {
		l := &a.fields[i]
		if f.none() {
			l.loaded = true
			continue
		}
		l.parts, l.inline = *f.parts, len(*f.inline)
		l.loaded = !f.late || late || len(l.parts) == 0
		if known != nil {
			l.value = known[i]
		}
		if !l.loaded {
			continue
		}
		if l.value == nil {
			whole, err := a.whole(f, from)
			if err != nil {
				return err
			}
			l.value = whole
		}
		*f.inline, *f.parts = l.value, nil
	}
	s.Steps = lastSteps(s.Steps) // its first part may have some that were dropped
	return nil
}

// whole reads the parts of a field.
func (a *apart) whole(f field, from found) ([]byte, error) {
	if !f.apart() {
		return *f.inline, nil
	}
	if !a.has {
		return nil, errNoParts
	}
	whole := f.memory(lengthOf(*f.parts) + len(*f.inline))
	for _, p := range *f.parts {
		value, err := from.Part(p.Number)
		if err != nil {
			return nil, err
		}
		if len(value) < int(p.Length) {
			return nil, fmt.Errorf("%w: part %d has %d bytes, the row says %d", errBroken, p.Number, len(value), p.Length)
		}
		whole = append(whole, value[:p.Length]...)
	}
	return append(whole, *f.inline...), nil
}

// numbers are those of the parts.
func numbers(parts []*Part) []uint32 {
	all := make([]uint32, len(parts))
	for i, p := range parts {
		all[i] = p.Number
	}
	return all
}
