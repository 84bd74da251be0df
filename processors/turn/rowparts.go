package turn

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/turnrow"
)

// A row is written with every event of its session. Its large fields change rarely, and mostly by appending: an answer
// extends the history, a response the tail of the open turn, a tool's result the results, a new record the memories and
// the steps. To keep the changelog small, the older bytes of these fields are stored separately, in parts of the row that
// are written once. The row lists its parts in order and contains the bytes that were appended since. A part is never
// changed: its replacement has a new number.
//
// A row is read in two steps, so that an event reads only the parts that it needs. The lists are loaded before an event is
// applied. The conversation, prompt and results are loaded when the transition asks for them (transition.load); bytes can be
// appended to them without loading them. After the event, divide makes parts of what was appended.

// parts reads the parts of a session's row. *processors.Context implements it.
type parts interface {
	// Part returns a part by its number, or nil if there is none. The same table gives the same bytes. The caller does
	// not change them.
	Part(number uint32) ([]byte, error)
}

// RowPart is a part of a row. It is written before the row.
type RowPart struct {
	Number uint32
	Value  []byte
}

var (
	// errBroken marks an event that cannot be applied because of a bug in this package or a damaged row.
	errBroken = errors.New("turn: the event cannot be applied")
	// errNoParts is returned for a row that was written under processors.New and is read under plain goka.NewProcessor.
	errNoParts = fmt.Errorf("%w: the row has parts, which only processors.New reads", rows.ErrVersion)
)

// The large fields of a row.
const (
	history = iota
	tail
	prompt
	results
	causes
	requests
	calls
	steps
	hidden
	largeFields // the number of fields
)

// fullValues are the full values of the large fields. The value of a field that was not loaded may be nil.
type fullValues [largeFields][]byte

// largeField is a field of a row that may have parts. The zero value is a field of the turn if no turn is open.
type largeField struct {
	parts  *[]*turnrow.Part
	inline *[]byte
	// lazy marks a field that is loaded when the transition needs it. The others are loaded before the event.
	lazy bool
	// entry is the size of an entry, for a list whose oldest entries are dropped from the front; else 0.
	entry int
	// limit is the maximum number of bytes in the row itself. If there are more, a part is written and rest bytes stay.
	limit, rest int
}

const (
	// historyInline is small compared with a history, and large enough that most turns write no part.
	historyInline = 2 << 10
	resultsInline = 2 << 10
	// promptInline is larger, because a prompt is usually written once: a part costs two more records, itself and its
	// deletion.
	promptInline = 6 << 10
	memoryInline = 32 * memorySize
	stepsInline  = 12 * stepSize
	hiddenInline = 2 << 10
	// bracket is the length of an array's closing bracket, the only byte that an appended message replaces.
	bracket = 1
)

func stateLargeFields(s *turnrow.State) [largeFields]largeField {
	fields := [largeFields]largeField{
		history:  {&s.HistoryParts, &s.History, true, 0, historyInline, bracket},
		causes:   {&s.CausesParts, &s.Causes, false, memorySize, memoryInline, 0},
		requests: {&s.RequestsParts, &s.Requests, false, memorySize, memoryInline, 0},
		calls:    {&s.CallsParts, &s.Calls, false, memorySize, memoryInline, 0},
		steps:    {&s.StepsParts, &s.Steps, false, stepSize, stepsInline, 0},
		hidden:   {&s.HiddenParts, &s.Hidden, true, 0, hiddenInline, 0},
	}
	if t := s.Turn; t != nil {
		fields[tail] = largeField{&t.TailParts, &t.Tail, true, 0, historyInline, bracket}
		fields[prompt] = largeField{&t.PromptParts, &t.Prompt, true, 0, promptInline, 0}
		fields[results] = largeField{&t.ResultsParts, &t.Results, true, 0, resultsInline, 0}
	}
	return fields
}

// absent reports whether this is a field of a turn and no turn is open.
func (f largeField) absent() bool { return f.parts == nil }

// hasParts reports whether the field names parts, which are not loaded then.
func (f largeField) hasParts() bool { return !f.absent() && len(*f.parts) > 0 }

// buffer allocates a buffer for the full field: with spare capacity for a list, which is appended to in place, and with
// exactly length bytes for any other field.
func (f largeField) buffer(length int) []byte {
	if f.entry == 0 {
		return make([]byte, 0, length)
	}
	return roomFor(length, f.entry)
}

// partsSize returns how many bytes of a row are in parts that are not loaded.
func partsSize(s *turnrow.State) (size int) {
	for _, f := range stateLargeFields(s) {
		if f.hasParts() {
			size += lengthOf(*f.parts)
		}
	}
	return size
}

func lengthOf(parts []*turnrow.Part) (length int) {
	for _, p := range parts {
		length += int(p.Length)
	}
	return length
}

// numbersOf returns the numbers of the parts.
func numbersOf(parts []*turnrow.Part) []uint32 {
	all := make([]uint32, len(parts))
	for i, p := range parts {
		all[i] = p.Number
	}
	return all
}

// rowLayout is the layout of a row's large fields as the row was read.
type rowLayout struct {
	fields [largeFields]fieldLayout
	next   uint32 // the number of the next part
	parts  parts
	limit  int // maximum size of the row with its parts, in bytes
}

// fieldLayout is the layout of a field as the row was read: the parts that it begins with, and its full value if it was
// loaded.
type fieldLayout struct {
	parts  []*turnrow.Part
	inline int    // how many bytes the row itself contains
	full   []byte // set also for a field that is cached but was not needed
	loaded bool
}

// open takes the layout of a row and loads the fields that every event needs. cached are the full fields of a cached
// state.
func (l *rowLayout) open(s *turnrow.State, parts parts, cached *fullValues, limit int) error {
	l.next, l.parts, l.limit = s.NextPart, parts, limit
	for i, f := range stateLargeFields(s) {
		if f.absent() {
			continue
		}
		l.fields[i] = fieldLayout{parts: *f.parts, inline: len(*f.inline), full: cached[i]}
		if !f.lazy || !f.hasParts() {
			if err := l.load(s, i); err != nil {
				return err
			}
		}
	}
	s.Steps = lastSteps(s.Steps) // the first part may contain entries that were dropped since
	return nil
}

// load replaces the parts of a field by its full value. It returns an error if a part is missing or too short. A lazy
// field that is not needed is not loaded even if it is cached, so that outcomes do not depend on the cache.
func (l *rowLayout) load(s *turnrow.State, i int) error {
	f, at := stateLargeFields(s)[i], &l.fields[i]
	switch appended := (*f.inline)[min(at.inline, len(*f.inline)):]; {
	case at.full == nil:
		full, err := l.read(f)
		if err != nil {
			return err
		}
		at.full = full
	case len(appended) > 0:
		at.full = append(at.full, appended...)
	}
	at.loaded = true
	*f.inline, *f.parts = at.full, nil
	return nil
}

// read returns the full value of a field from its parts and the row.
func (l *rowLayout) read(f largeField) ([]byte, error) {
	if !f.hasParts() {
		return *f.inline, nil
	}
	if l.parts == nil {
		return nil, errNoParts
	}
	full := f.buffer(lengthOf(*f.parts) + len(*f.inline))
	for _, p := range *f.parts {
		value, err := l.parts.Part(p.Number)
		if err != nil {
			return nil, fmt.Errorf("turn: part %d of the row cannot be read: %w", p.Number, err)
		}
		if len(value) < int(p.Length) {
			return nil, fmt.Errorf("%w: part %d has %d bytes, the row says %d", errBroken, p.Number, len(value), p.Length)
		}
		full = append(full, value[:p.Length]...)
	}
	return append(full, *f.inline...), nil
}

// partName bounds the bytes of a reference to a part.
const partName = 16

// reserve returns an upper bound of the bytes that divide adds to a row, besides the references to lazy fields that were
// loaded: references to two new parts per field, the next part number, the version, and longer length prefixes.
func (l *rowLayout) reserve() int {
	const rest = 24
	if l.parts == nil {
		return 0
	}
	return 2*largeFields*partName + rest
}

// stateSize returns the size of a row with its parts, in bytes.
func stateSize(s *turnrow.State) int { return proto.Size(s) + partsSize(s) }

// within reports whether a row with its parts has at most limit bytes.
func within(s *turnrow.State, limit int) bool { return stateSize(s) <= limit }

// lastSteps returns the newest maxSteps entries of steps.
func lastSteps(steps []byte) []byte { return steps[max(0, len(steps)-maxSteps*stepSize):] }
