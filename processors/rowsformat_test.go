package processors_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/turntable-streams/turntable/processors/internal/rows"
)

// versioned is a message with a version and nothing else.
type versioned struct {
	emptypb.Empty
	version uint32
}

func (v *versioned) GetVersion() uint32 { return v.version }

func TestNewerRowsAreRejected(t *testing.T) {
	newer := errors.New("newer")
	f := rows.Format{Name: "x", Version: 2, Newer: newer}
	require.NoError(t, f.Decode(nil, &versioned{version: 2}))
	require.ErrorIs(t, f.Decode(nil, &versioned{version: 3}), newer)
	require.ErrorContains(t, f.Decode([]byte{0xff}, &versioned{}), "x: decode row")
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
