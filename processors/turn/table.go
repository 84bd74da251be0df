package turn

import (
	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/timed"
)

// encodedRows is the codec of the group table. Its rows stay encoded until stateOf.
type encodedRows struct{ timed.Rows[*turnrow.State] }

// Decode returns the row undecoded, because its state may be cached.
func (encodedRows) Decode(raw []byte) (any, error) {
	if raw == nil {
		return nil, nil
	}
	return storedRow(raw), nil
}

// storedRow is a row that stateOf decodes.
type storedRow []byte

// stateOf returns the state in a value of the table, as Processor.Get, a goka.View or a test harness returns it.
func stateOf(row any) (*turnrow.State, error) {
	if stored, ok := row.(storedRow); ok {
		return turnrow.Table.Unmarshal(stored)
	}
	return turnrow.Table.Of(row)
}

// snapshot is the state of a session before an event: a decoded row, and its parts, which are read only if the event needs
// them. The other fields are cached. They save decoding and reading, and outcomes do not depend on them.
type snapshot struct {
	state *turnrow.State // nil: the session has no row
	parts parts
	full  fullValues

	spendings spendings // nil: none are known
}

// tableRow is a row of the group table and its parts. *processors.Context implements it.
type tableRow interface {
	parts
	Value() any
	HasParts() bool
}

var _ tableRow = (*processors.Context)(nil)

// read returns the snapshot of a session: from the cache, which no longer has the state then, or decoded from the table's
// row.
func (c *stateCache) read(from tableRow, session string) (at snapshot, err error) {
	if from.HasParts() {
		at.parts = from
	}
	row := from.Value()
	if raw, ok := row.(storedRow); ok {
		if cached, ok := c.take(session, raw); ok {
			at.state, at.full = cached.state, cached.full
			return at, nil
		}
	}
	at.state, err = stateOf(row)
	return at, err
}
