package turn

import (
	"github.com/turntable-streams/turntable/internal/rows/turnrow"
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
