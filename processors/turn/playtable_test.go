package turn

import (
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
)

// table is the row as the table has it.
func (p *play) table() table { return table{p.row, p.parts} }

// table is a row and its parts; a table without the map takes no parts.
type table struct {
	row   []byte
	parts map[uint32][]byte
}

func (t table) Value() any {
	if t.row == nil {
		return nil
	}
	return storedRow(t.row)
}

func (t table) HasParts() bool { return t.parts != nil }

func (t table) Part(n uint32) ([]byte, error) { return t.parts[n], nil }

func (t table) loader() parts {
	if t.parts == nil {
		return nil
	}
	return t
}

// state is the row with its parts.
func (p *play) state() *turnrow.State {
	p.tb.Helper()
	if p.row == nil {
		return nil
	}
	s, err := turnrow.Table.Unmarshal(p.row)
	require.NoError(p.tb, err)
	loadAll(p.tb, s, p.table(), nil)
	return s
}

// stored is the row without its parts.
func (p *play) stored() *turnrow.State {
	p.tb.Helper()
	s, err := turnrow.Table.Unmarshal(p.row)
	require.NoError(p.tb, err)
	return s
}

// loadAll loads all parts of a row.
func loadAll(t require.TestingT, s *turnrow.State, from table, cached *fullValues) *rowLayout {
	l := openLayout(t, s, from, cached)
	for i, f := range stateLargeFields(s) {
		if f.hasParts() {
			require.NoError(t, l.load(s, i))
		}
	}
	return l
}

// openLayout loads the parts of a row that every event needs.
func openLayout(t require.TestingT, s *turnrow.State, from table, cached *fullValues) *rowLayout {
	if cached == nil {
		cached = &fullValues{}
	}
	l := &rowLayout{}
	require.NoError(t, l.open(s, from.loader(), cached, 0))
	return l
}
