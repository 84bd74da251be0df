package fold

import (
	"fmt"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/callback"
	"github.com/turntable-streams/turntable/internal/row"
	"github.com/turntable-streams/turntable/processors"
)

// rows is the codec of the group table: that of rows, with their deadlines.
type rows struct {
	codec.Codec[*Row]
	onDeadline func(c *processors.Context) error
}

var (
	_ processors.Timed = rows{}
	_ callback.Frozen  = rows{}
)

// FrozenRows implements callback.Frozen.
func (rows) FrozenRows() {}

func (rows) Deadline(raw []byte) (ms int64, ok bool) { return row.Deadline(raw) }

func (r rows) OnDeadline(ctx goka.Context, _ processors.Due) {
	processors.OnDeadline(ctx, r.onDeadline)
}

// TableCodec is the codec of the group table, for whoever looks into it. Decode yields a codec.Decoded[*Row], which
// RowOf takes.
func TableCodec() codec.Codec[*Row] { return codec.Of[*Row](rowFormat{}) }

type rowFormat struct{}

func (rowFormat) Marshal(r *Row) ([]byte, error)     { return EncodeRow(r) }
func (rowFormat) Unmarshal(raw []byte) (*Row, error) { return DecodeRow(raw) }

// RowOf is the row in what a table of this package yields: Processor.Get, a goka.View, a harness. Nil is no row.
func RowOf(row any) (*Row, error) {
	switch v := row.(type) {
	case nil:
		return nil, nil
	case codec.Decoded[*Row]:
		return v.Value, v.Err
	default:
		return nil, fmt.Errorf("%w: got %T, want a row of fold's table", codec.ErrType, row)
	}
}
