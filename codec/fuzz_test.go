package codec_test

import (
	"bytes"
	"testing"

	//lint:ignore SA1019 the codec takes messages of the old API, so its tests have some
	oldproto "github.com/golang/protobuf/proto"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/turntable-streams/turntable/codec"
)

// decodes checks what must hold for every codec and all bytes: they decode to poison or to a value that round-trips.
func decodes[T any](t *testing.T, c codec.Codec[T], raw []byte, equal func(a, b T)) {
	t.Helper()
	kept := bytes.Clone(raw)
	d := c.Unmarshal(raw)
	require.Equal(t, kept, raw, "input modified")
	require.Equal(t, raw, d.Raw)
	if d.Err != nil {
		require.NotErrorIs(t, d.Err, codec.ErrPanic)
		return
	}
	require.Equal(t, raw == nil, d.Tombstone())
	again, err := c.Encode(d)
	if err != nil {
		require.NotErrorIs(t, err, codec.ErrPanic)
		return
	}
	e := c.Unmarshal(again)
	require.NoError(t, e.Err)
	equal(d.Value, e.Value)
	twice, err := c.Encode(e)
	require.NoError(t, err)
	require.Equal(t, again, twice)
}

func FuzzJSON(f *testing.F) {
	for _, o := range orders() {
		raw, err := codec.JSON[order]().Marshal(o)
		require.NoError(f, err)
		f.Add(raw)
	}
	for _, text := range []string{"", "null", "{", `{"a":1} x`, `"\ud800"`, `{"a":{"b":1},"a":{"c":2}}`, "[[[[", "1e999"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		// A nil slice is decoded as an empty one, so for an order only the bytes are compared.
		decodes(t, codec.JSON[order](), raw, func(order, order) {})
		decodes(t, codec.JSON[any](), raw, func(a, b any) { require.Equal(t, a, b) })
	})
}

func FuzzProto(f *testing.F) {
	for _, v := range values(f) {
		raw, err := codec.Proto[*structpb.Value]().Marshal(v)
		require.NoError(f, err)
		f.Add(raw)
	}
	for _, o := range oldOrders() {
		raw, err := codec.Proto[*oldOrder]().Marshal(o)
		require.NoError(f, err)
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		decodes(t, codec.Proto[*structpb.Value](), raw, func(a, b *structpb.Value) { sameMessage(t, a, b) })
		decodes(t, codec.Proto[*oldOrder](), raw, func(a, b *oldOrder) {
			sameMessage(t, oldproto.MessageV2(a), oldproto.MessageV2(b))
		})
	})
}

// sameMessage takes NaN for equal to itself, as proto.Equal does.
func sameMessage(t *testing.T, a, b proto.Message) {
	t.Helper()
	require.True(t, proto.Equal(a, b), "%v and %v", a, b)
}

func FuzzBytes(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("text"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		require.NoError(t, codec.Bytes().Unmarshal(raw).Err)
		decodes(t, codec.Bytes(), raw, func(a, b []byte) { require.Equal(t, a, b) })
	})
}

func FuzzString(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("naïve \xff"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		require.NoError(t, codec.String().Unmarshal(raw).Err)
		decodes(t, codec.String(), raw, func(a, b string) { require.Equal(t, a, b) })
	})
}

func FuzzPartitionOf(f *testing.F) {
	for _, v := range vectors {
		f.Add(v.key, uint16(12))
	}
	f.Add("key\x001", uint16(3))
	f.Fuzz(func(t *testing.T, key string, partitions uint16) {
		n := int32(partitions) + 1
		logical, _, _ := bytes.Cut([]byte(key), []byte{0})
		require.Equal(t, kgoPartition(string(logical), n), codec.PartitionOf(key, n))
		require.Equal(t, saramaPartition(t, key, n), codec.PartitionOf(key, n))
	})
}
