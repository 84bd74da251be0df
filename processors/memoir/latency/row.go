package latency

import (
	"fmt"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/rows"
)

const rowVersion = 1

// ErrRowVersion is wrapped by the error of a row that a newer build wrote.
var ErrRowVersion = fmt.Errorf("%w: latency: row has a newer version", processors.ErrKeepRecord)

var layout = rows.Format{Name: "latency", Version: rowVersion, Newer: ErrRowVersion}

// TableCodec returns the codec of Graph's table, for views and tools that read it. Decode returns a
// codec.Decoded[*ToolLatencies]; pass that to RowOf.
func TableCodec() codec.Codec[*ToolLatencies] { return codec.Of[*ToolLatencies](rowFormat{}) }

type rowFormat struct{}

func (rowFormat) Marshal(t *ToolLatencies) ([]byte, error) { return layout.Encode(t) }

func (rowFormat) Unmarshal(raw []byte) (*ToolLatencies, error) {
	row := &ToolLatencies{}
	if err := layout.Decode(raw, row); err != nil {
		return nil, err
	}
	if _, err := binsOf(row); err != nil {
		return nil, err
	}
	return row, nil
}

// RowOf returns the row in a value of Graph's table, as Processor.Get, a goka.View or a test harness returns it. A nil value is
// a tool without a row and returns nil. The error wraps ErrRowVersion if the row has a newer version, or codec.ErrType if the
// value is of another type. AggregateOf returns what a row contains.
func RowOf(row any) (*ToolLatencies, error) { return rows.Of[*ToolLatencies](row, "package latency") }
