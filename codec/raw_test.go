package codec_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/codec/codectest"
)

func TestBytesPassTheCodecSuite(t *testing.T) {
	codectest.Run(t, codec.Bytes(), []byte{}, []byte{0}, []byte("text"), []byte{0xff, 0xfe})
	codectest.Copies(t, codec.Bytes(), []byte("text"))
}

func TestStringPassesTheCodecSuite(t *testing.T) {
	codectest.Run(t, codec.String(), "", "\x00", "text", "naïve", "\xff\xfe")
	codectest.Copies(t, codec.String(), "text")
}

func TestNilSliceIsTombstoneAndEmptySliceIsNot(t *testing.T) {
	raw, err := codec.Bytes().Encode([]byte(nil))
	require.NoError(t, err)
	require.Nil(t, raw)
	raw, err = codec.Bytes().Encode([]byte{})
	require.NoError(t, err)
	require.Equal(t, []byte{}, raw)
}

func TestZeroLengthIsNeitherPoisonNorTombstone(t *testing.T) {
	require.Equal(t, codec.Decoded[[]byte]{Value: []byte{}, Raw: []byte{}}, codec.Bytes().Unmarshal([]byte{}))
	require.Equal(t, codec.Decoded[string]{Raw: []byte{}}, codec.String().Unmarshal([]byte{}))
	require.False(t, codec.String().Unmarshal([]byte{}).Tombstone())
}
