package processors_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/processors/internal/timed"
)

func TestEncodedRowsAreKept(t *testing.T) {
	c := timed.Rows[string]{Codec: codec.String()}
	for _, value := range []any{"a row", []byte("a row")} {
		raw, err := c.Encode(value)
		require.NoError(t, err)
		require.Equal(t, "a row", string(raw))
	}
	_, ok := c.Deadline(nil)
	require.False(t, ok)
}

func TestValuesOfATable(t *testing.T) {
	table := gaterow.GrantTable
	row, err := table.Of(nil)
	require.NoError(t, err)
	require.Nil(t, row)
	stored := &gaterow.Grants{Version: 1}
	raw, err := table.Marshal(stored)
	require.NoError(t, err)
	for _, value := range []any{stored, table.Codec().Unmarshal(raw)} {
		row, err = table.Of(value)
		require.NoError(t, err)
		require.EqualValues(t, 1, row.GetVersion())
	}
	_, err = table.Of(7)
	require.ErrorIs(t, err, codec.ErrType)
	require.ErrorContains(t, err, "got int, want a row of package gate")
}
