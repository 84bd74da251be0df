package cost

import (
	"fmt"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/rows"
)

const rowVersion = 1

// ErrRowVersion is wrapped by the error of a row that a newer build wrote.
var ErrRowVersion = fmt.Errorf("%w: cost: row has a newer version", processors.ErrKeepRecord)

var layout = rows.Format{Name: "cost", Version: rowVersion, Newer: ErrRowVersion}

// SessionCodec returns the codec of Graph's table, for views and tools that read it. Decode returns a
// codec.Decoded[*SessionTotals]; pass that to SessionOf.
func SessionCodec() codec.Codec[*SessionTotals] { return codec.Of[*SessionTotals](sessionFormat{}) }

type sessionFormat struct{}

func (sessionFormat) Marshal(s *SessionTotals) ([]byte, error) { return layout.Encode(s) }

func (sessionFormat) Unmarshal(raw []byte) (*SessionTotals, error) {
	row := &SessionTotals{}
	if err := layout.Decode(raw, row); err != nil {
		return nil, err
	}
	return row, nil
}

// SessionOf returns the totals in a value of Graph's table, as Processor.Get, a goka.View or a test harness returns it. A nil
// value is a session without a row and returns nil. The error wraps ErrRowVersion if the row has a newer version, or
// codec.ErrType if the value is of another type.
func SessionOf(row any) (*SessionTotals, error) { return rows.Of[*SessionTotals](row, "package cost") }

// ScopeCodec returns the codec of SpendingGraph's table, for views and tools that read it. Decode returns a
// codec.Decoded[*ScopeTotals]; pass that to ScopeOf.
func ScopeCodec() codec.Codec[*ScopeTotals] { return codec.Of[*ScopeTotals](scopeFormat{}) }

type scopeFormat struct{}

func (scopeFormat) Marshal(s *ScopeTotals) ([]byte, error) { return layout.Encode(s) }

func (scopeFormat) Unmarshal(raw []byte) (*ScopeTotals, error) {
	row := &ScopeTotals{}
	if err := layout.Decode(raw, row); err != nil {
		return nil, err
	}
	return row, nil
}

// ScopeOf returns the totals in a value of SpendingGraph's table. A nil value is a scope without a row and returns nil. Its
// errors are those of SessionOf.
func ScopeOf(row any) (*ScopeTotals, error) { return rows.Of[*ScopeTotals](row, "package cost") }
