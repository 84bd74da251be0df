package group

import (
	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors/internal/rows"
)

// TableCodec returns the codec of the group table, for views and tools. Its Decode returns a codec.Decoded[*Row], from
// which RowOf gets the row.
func TableCodec() codec.Codec[*Row] { return codec.Of[*Row](rowFormat{}) }

type rowFormat struct{}

func (rowFormat) Marshal(r *Row) ([]byte, error)     { return EncodeRow(r) }
func (rowFormat) Unmarshal(raw []byte) (*Row, error) { return DecodeRow(raw) }

// RowOf returns the row in a value of the group table, as Processor.Get, goka.View and the test harness return it. It
// returns nil for nil, and fails with codec.ErrType for a value of another type.
func RowOf(row any) (*Row, error) { return rows.Of[*Row](row, "fold's table") }
