package codec_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/turntable-streams/turntable/codec"
)

// envelope has a history that is not decoded.
type envelope struct {
	Session string         `json:"session"`
	History jsontext.Value `json:"history"`
}

func history() []byte {
	text := strings.Repeat("lorem ipsum ", 20)
	message := `{"role":"user","content":[{"type":"text","text":"` + text + `"}],"metadata":{}},`
	return []byte(`{"session":"s-1","history":[` + strings.Repeat(message, 100<<10/len(message)) + `null]}`)
}

func benchmark[T any](b *testing.B, c codec.Codec[T], v T) {
	raw, err := c.Marshal(v)
	require.NoError(b, err)
	b.Run("Marshal", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(raw)))
		for b.Loop() {
			_, _ = c.Marshal(v)
		}
	})
	b.Run("Unmarshal", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(raw)))
		for b.Loop() {
			_ = c.Unmarshal(raw)
		}
	})
}

func BenchmarkJSON(b *testing.B) {
	b.Run("order", func(b *testing.B) { benchmark(b, codec.JSON[order](), orders()[1]) })
	b.Run("history", func(b *testing.B) {
		c := codec.JSON[envelope]()
		benchmark(b, c, c.Unmarshal(history()).Value)
	})
	b.Run("trailing text", func(b *testing.B) {
		raw := append(history(), "text"...)
		b.ReportAllocs()
		b.SetBytes(int64(len(raw)))
		for b.Loop() {
			_ = codec.JSON[envelope]().Unmarshal(raw)
		}
	})
}

func BenchmarkProto(b *testing.B) {
	b.Run("new API", func(b *testing.B) { benchmark[*structpb.Value](b, codec.Proto[*structpb.Value](), values(b)[2]) })
	b.Run("old API", func(b *testing.B) { benchmark(b, codec.Proto[*oldOrder](), oldOrders()[1]) })
}

func BenchmarkBytes(b *testing.B)  { benchmark(b, codec.Bytes(), history()) }
func BenchmarkString(b *testing.B) { benchmark(b, codec.String(), string(history())) }

func BenchmarkCheckDepth(b *testing.B) {
	many := []byte("[" + strings.Repeat(string(history())+",", 5) + "0]")
	for name, raw := range map[string][]byte{"few": history(), "many": many} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				_ = codec.CheckDepth(raw)
			}
		})
	}
}

func BenchmarkPartitionOf(b *testing.B) {
	const key = "8a6d7c1e-52f0-4b1c-9a53-8f1f6c0d2b44"
	b.ReportAllocs()
	for b.Loop() {
		_ = codec.PartitionOf(key, 12)
	}
}

func BenchmarkKeyHasher(b *testing.B) {
	key := []byte("8a6d7c1e-52f0-4b1c-9a53-8f1f6c0d2b44")
	h := codec.KeyHasher()()
	b.ReportAllocs()
	for b.Loop() {
		h.Reset()
		_, _ = h.Write(key)
		_ = h.Sum32()
	}
}
