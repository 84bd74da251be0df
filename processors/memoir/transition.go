package memoir

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/memoirrow"
)

// outcome is the result of applying an event to a row.
type outcome struct {
	// Changed reports whether the row must be written, or deleted if State is nil. If it is false, the row stays as it is.
	Changed bool
	// State is the new row. It is set only if Changed is true.
	State *memoirrow.State
	// Effects are the records to write, in this order and before the row.
	Effects []effect
	// New are the parts of the row to write before it, and Unused the numbers of those to delete after it.
	New    []newPart
	Unused []uint32
	// Forgotten reports that nothing of the user may be left: all parts that the row does not name must be deleted too.
	Forgotten bool
}

// partReader reads the parts of a user's row. *processors.Context implements it.
type partReader interface {
	// Part returns a part by its number, or nil if there is none.
	Part(number uint32) ([]byte, error)
}

// newPart is a part of a row.
type newPart struct {
	Number uint32
	Value  []byte
}

// apply is the state machine of memories: it applies an event to the row of its user. A nil state is a user without a row.
// It modifies the state that it is given, so the caller must not use it afterwards; it only reads the event. It is
// deterministic. With nil parts, snapshots are stored in the row itself.
//
// An event that was applied before changes nothing and has no effects. The error is that of parts.
func apply(state *memoirrow.State, e event, parts partReader, now time.Time, config Config) (outcome, error) {
	t := &transition{row: state, key: e.user(), parts: parts, now: now, config: config}
	if t.row == nil {
		t.row = &memoirrow.State{}
	}
	e.apply(t)
	t.settle()
	t.sendNext()
	if t.err != nil {
		return outcome{}, t.err
	}
	out := t.out
	if t.erased {
		out.Changed, out.Forgotten = state != nil, true
		return out, nil
	}
	if out.Changed = t.changed; !t.changed {
		return out, nil
	}
	if _, timer := e.(deadlineCame); !timer {
		t.row.TouchedMs = t.nowMS()
	}
	for proto.Size(t.row) > t.config.RecordLimit-rowMargin && len(t.row.Remembered) > 0 {
		t.row.Remembered = digests.NewestEntries(t.row.Remembered, digests.CountEntries(t.row.Remembered)/2)
	}
	t.row.Version, t.row.DeadlineMs = memoirrow.Version, t.deadline()
	out.State = t.row
	return out, nil
}

// rowMargin is the room that a row leaves in a record, for its key and the record's framing.
const rowMargin = 8 << 10

// errNoParts is returned for a row that was written under processors.New and is read under plain goka.NewProcessor.
var errNoParts = fmt.Errorf("%w: the row has parts, which only processors.New reads", rows.ErrVersion)

// transition is a user's row while one event is applied to it.
type transition struct {
	row     *memoirrow.State
	key     string // the memory key
	parts   partReader
	now     time.Time
	config  Config
	out     outcome
	changed bool // the row must be written
	erased  bool // the row must be deleted
	err     error
}

func (t *transition) nowMS() int64 { return t.now.UnixMilli() }

// after returns the time d from now, in milliseconds since the epoch.
func (t *transition) after(d time.Duration) int64 { return t.now.Add(d).UnixMilli() }

func (t *transition) effect(e effect) { t.out.Effects = append(t.out.Effects, e) }

// deadLetter sends the event's record to the dead-letter topic.
func (t *transition) deadLetter(reason string) { t.effect(deadLetter{Reason: reason}) }

// find returns the pending session with an end, nil if there is none.
func (t *transition) find(end string) *memoirrow.Pending {
	for _, p := range t.row.Pending {
		if p.End == end {
			return p
		}
	}
	return nil
}

// open returns the session whose pass was sent first of those that are with workers, nil if there is none.
func (t *transition) open() *memoirrow.Pending {
	for _, p := range t.row.Pending {
		if isOpen(p) {
			return p
		}
	}
	return nil
}

// isOpen reports whether a pass is with a worker.
func isOpen(p *memoirrow.Pending) bool { return p.Sent && !p.Answered }
