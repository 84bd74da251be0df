package turn

import "fmt"

// A row is written with every event of its session. Its large fields change rarely, and mostly by appending: an answer
// extends the history, a response the tail of the open turn, a tool's result the results, a new record the memories and
// the steps. To keep the changelog small, the older bytes of these fields are stored separately, in parts of the row that
// are written once. The row lists its parts in order and contains the bytes that were appended since. A part is never
// changed: its replacement has a new number.

// apart is the layout of a row's large fields as the row was read.
type apart struct {
	fields [bigs]laid
	next   uint32
	has    bool // the table supports parts
	limit  int  // maximum size of the row with its parts, in bytes; 0 means no limit
}

// laid is the layout of a field as the row was read: the parts that it begins with, and its full value if it was loaded.
type laid struct {
	parts  []*Part
	inline int    // how many bytes the row itself contains
	value  []byte // set also for a late field that is cached but was not needed
	loaded bool
}

// newPart is a part that will be written.
type newPart struct {
	number uint32
	value  []byte
}

// field is a field of a row that may have parts. The zero value is a field of the turn if no turn is open.
type field struct {
	parts  *[]*Part
	inline *[]byte
	// late marks a field that is loaded only if the event is likely to need it. Bytes can be appended without loading it.
	late bool
	// entry is the size of an entry, for a list whose oldest entries are dropped from the front; else 0.
	entry int
	// limit is the maximum number of bytes in the row itself. If there are more, a part is written and rest bytes stay.
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
	bigs // the number of fields
)

// wholes are the full values of the fields.
type wholes [bigs][]byte

const (
	// historyInline is small compared with a history, and large enough that most turns write no part.
	historyInline = 2 << 10
	resultsInline = 2 << 10
	memoryInline  = 32 * memorySize
	stepsInline   = 12 * stepSize
	// bracket is the length of an array's closing bracket, the only byte that an appended message replaces.
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

// apart reports whether the field has parts.
func (f field) apart() bool { return !f.none() && len(*f.parts) > 0 }

// memory allocates a buffer for the full field: with spare capacity for a list, which is appended to in place, and with
// exactly length bytes for any other field.
func (f field) memory(length int) []byte {
	if f.entry == 0 {
		return make([]byte, 0, length)
	}
	return roomFor(length, f.entry)
}

// partsSize returns how many bytes of a row are in parts that are not loaded.
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

// load replaces the parts of a state's fields by their full values: of all fields if late is true, else of all but the
// late ones. known are the fields of a cached state, or nil. A late field that is not needed is not loaded even if it is
// cached, so that outcomes do not depend on the cache. load returns an error if a part is missing or too short.
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
	s.Steps = lastSteps(s.Steps) // the first part may contain entries that were dropped since
	return nil
}

// whole returns the full value of a field.
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

// numbers returns the numbers of the parts.
func numbers(parts []*Part) []uint32 {
	all := make([]uint32, len(parts))
	for i, p := range parts {
		all[i] = p.Number
	}
	return all
}
