package group

import (
	"fmt"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/rowformat"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/processors"
)

// rows is the codec of the group table. It also implements the deadlines of the rows.
type rows struct {
	codec.Codec[*Row]
	onDeadline func(c *processors.Context) error
}

var (
	_ processors.Timed  = rows{}
	_ runtimeapi.Frozen = rows{}
)

// FrozenRows implements runtimeapi.Frozen.
func (rows) FrozenRows() {}

func (rows) Deadline(raw []byte) (ms int64, ok bool) { return rowformat.Deadline(raw) }

func (r rows) OnDeadline(ctx goka.Context, _ processors.Due) {
	processors.OnDeadline(ctx, r.onDeadline)
}

// TableCodec returns the codec of the group table, for views and tools. Its Decode returns a codec.Decoded[*Row], from
// which RowOf gets the row.
func TableCodec() codec.Codec[*Row] { return codec.Of[*Row](rowFormat{}) }

type rowFormat struct{}

func (rowFormat) Marshal(r *Row) ([]byte, error)     { return EncodeRow(r) }
func (rowFormat) Unmarshal(raw []byte) (*Row, error) { return DecodeRow(raw) }

// RowOf returns the row in a value of the group table, as Processor.Get, goka.View and the test harness return it. It
// returns nil for nil, and fails with codec.ErrType for a value of another type.
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
