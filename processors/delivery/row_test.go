package delivery

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/deliveryrow"
	"github.com/turntable-streams/turntable/topics"
)

func TestRowWithNewerVersionIsNotDecoded(t *testing.T) {
	raw, err := deliveryrow.Table.Marshal(&deliveryrow.State{Version: rowChannels + 1})
	require.NoError(t, err)
	_, err = deliveryrow.Table.Unmarshal(raw)
	require.ErrorIs(t, err, rows.ErrVersion)
	_, err = deliveryrow.Table.Of(deliveryrow.Table.Codec().Unmarshal(raw))
	require.ErrorIs(t, err, rows.ErrVersion)
	_, err = deliveryrow.CircuitTable.Of(deliveryrow.CircuitTable.Codec().Unmarshal(raw))
	require.ErrorIs(t, err, rows.ErrVersion)
	_, err = deliveryrow.Table.Of("text")
	require.Error(t, err)
}

func TestUnknownFieldsSurvive(t *testing.T) {
	p := newHarness(t)
	a := attempt(t, p.Handle(p.outputOf("t1", harbor)))
	p.Row = protowire.AppendTag(p.Row, 999, protowire.VarintType)
	p.Row = protowire.AppendVarint(p.Row, 7)
	p.Handle(p.receiptOf(a, topics.OutcomeFailed))
	require.NotEmpty(t, p.Read().ProtoReflect().GetUnknown())
}

func TestDeadlineIsReadWithoutDecodingTheRow(t *testing.T) {
	raw, err := deliveryrow.Table.Marshal(&deliveryrow.State{Version: 1, DeadlineMs: 77, Remembered: []byte("x")})
	require.NoError(t, err)
	ms, ok := rows.Deadline(raw)
	require.True(t, ok)
	require.EqualValues(t, 77, ms)
	for _, none := range [][]byte{nil, {}, {0xff}, {0x12, 0x80}} {
		_, ok = rows.Deadline(none)
		require.False(t, ok)
	}
}
