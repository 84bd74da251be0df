package memoir

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/memoirrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// readPart reads a part of a row by its number, nil if there is none.
type readPart func(number uint32) ([]byte, error)

// apply is the state machine of memories: it applies an event to the row of its user. A nil state is a user without a row.
// It modifies the state that it is given, so the caller must not use it afterwards; it only reads the event. It is
// deterministic. With nil parts, snapshots are stored in the row itself.
//
// An event that was applied before changes nothing and has no effects. The error is that of parts.
func apply(
	state *memoirrow.State, user string, e event, parts readPart, now time.Time, catalog topics.Catalog, config Config,
) (machine.Outcome[*memoirrow.State], error) {
	t := &transition{row: state, key: user, parts: parts, now: now, topics: catalog, config: config}
	if t.row == nil {
		t.row = &memoirrow.State{}
	}
	e.apply(t)
	t.settle()
	t.sendNext()
	switch {
	case t.err != nil:
		return machine.Outcome[*memoirrow.State]{}, t.err
	case t.erased:
		return machine.Outcome[*memoirrow.State]{Changed: state != nil, Forgotten: true, Effects: t.List()}, nil
	case !t.changed:
		return machine.Outcome[*memoirrow.State]{Effects: t.List()}, nil
	}
	if _, timer := e.(deadlineCame); !timer {
		t.row.TouchedMs = t.nowMS()
	}
	for proto.Size(t.row) > t.config.RecordLimit-rowMargin && len(t.row.Remembered) > 0 {
		t.row.Remembered = digests.NewestEntries(t.row.Remembered, digests.CountEntries(t.row.Remembered)/2)
	}
	t.row.Version, t.row.DeadlineMs = memoirrow.Version, t.deadline()
	return machine.Outcome[*memoirrow.State]{Changed: true, Row: t.row, Effects: t.List()}, nil
}

// rowMargin is the room that a row leaves in a record, for its key and the record's framing.
const rowMargin = 8 << 10

// errNoParts is returned for a row that was written under processors.New and is read under plain goka.NewProcessor.
var errNoParts = fmt.Errorf("%w: the row has parts, which only processors.New reads", rows.ErrVersion)

// transition is a user's row while one event is applied to it.
type transition struct {
	machine.Effects
	row     *memoirrow.State
	key     string   // the memory key
	parts   readPart // nil if rows have no parts
	now     time.Time
	topics  topics.Catalog
	config  Config
	changed bool // the row must be written
	erased  bool // the row must be deleted
	err     error
}

func (t *transition) nowMS() int64 { return t.now.UnixMilli() }

// after returns the time d from now, in milliseconds since the epoch.
func (t *transition) after(d time.Duration) int64 { return t.now.Add(d).UnixMilli() }

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
