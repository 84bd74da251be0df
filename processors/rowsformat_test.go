package processors_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/processors"
)

func TestNewerRowsAreRejected(t *testing.T) {
	table := rows.Table[*gaterow.Grants]{Name: "x", Version: 2}
	row := func(version uint32) []byte {
		raw, err := table.Marshal(&gaterow.Grants{Version: version})
		require.NoError(t, err)
		return raw
	}
	stored, err := table.Unmarshal(row(2))
	require.NoError(t, err)
	require.EqualValues(t, 2, stored.GetVersion())
	_, err = table.Unmarshal(row(3))
	require.ErrorIs(t, err, rows.ErrVersion)
	require.ErrorIs(t, err, processors.ErrKeepRecord)
	_, err = table.Unmarshal([]byte{0xff})
	require.ErrorContains(t, err, "x: decode row")
}

func TestDeadlineIsReadWithoutDecodingTheRow(t *testing.T) {
	field := func(dst []byte, n protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(dst, n, protowire.VarintType), v)
	}
	at, ok := rows.Deadline(field(field(nil, 1, 7), 2, 77))
	require.True(t, ok)
	require.EqualValues(t, 77, at)
	for _, none := range [][]byte{nil, {0xff}, {0x10}, field(nil, 1, 7), field(nil, 2, 0)} {
		_, ok := rows.Deadline(none)
		require.False(t, ok)
	}
}
