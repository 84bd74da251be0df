package processors_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors/internal/rows"
)

func TestEncodedRowsAreKept(t *testing.T) {
	c := rows.Timed[string]{Codec: codec.String()}
	for _, value := range []any{"a row", []byte("a row")} {
		raw, err := c.Encode(value)
		require.NoError(t, err)
		require.Equal(t, "a row", string(raw))
	}
	_, ok := c.Deadline(nil)
	require.False(t, ok)
}

func TestValuesOfATable(t *testing.T) {
	row, err := rows.Of[string](nil, "a table")
	require.NoError(t, err)
	require.Empty(t, row)
	row, err = rows.Of[string](codec.String().Unmarshal([]byte("a row")), "a table")
	require.NoError(t, err)
	require.Equal(t, "a row", row)
	_, err = rows.Of[string](7, "a table")
	require.ErrorIs(t, err, codec.ErrType)
	require.ErrorContains(t, err, "got int, want a row of a table")
}
