package fold_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/rows/foldrow"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/topics"
)

func TestPurgeDeletesADamagedRowAndAllParts(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, row []byte) []byte{
		"none":        func(_ *testing.T, row []byte) []byte { return row },
		"no Protobuf": func(*testing.T, []byte) []byte { return []byte("\xff\xff no row") },
		"truncated":   func(_ *testing.T, row []byte) []byte { return row[:len(row)-3] },
		"turn is not a fold": func(t *testing.T, row []byte) []byte {
			r, err := foldrow.Table.Unmarshal(row)
			require.NoError(t, err)
			r.Open[0].Tail = []byte("\xff\xff\xff")
			r.Open[0].Parts = append(r.Open[0].Parts, &foldrow.Extent{First: 3, Count: 2})
			row, err = foldrow.Table.Marshal(r)
			require.NoError(t, err)
			return row
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, fold.Config{})
			raw := processortest.Table(b.Driver, b.topics.FoldGroup(), codec.Bytes())
			parts := func() (numbers []uint32) {
				for n := uint32(noon.Unix()); n < uint32(noon.Unix())+100; n++ {
					if raw.Part("s", n) != nil {
						numbers = append(numbers, n)
					}
				}
				return numbers
			}
			b.say("closed", "Hello")
			b.end("closed", 2, "end_turn")
			b.batches.Next()
			b.say("t", "Hello")
			for i := range 100 {
				b.event("t", int64(i+2), `{"type":"message","data":{"text":"`+strings.Repeat("secret ", 20)+`"}}`)
			}
			raw.Put("s", damage(t, raw.Raw("s")))
			raw.Put(runtimeapi.PartKey("s", uint32(noon.Unix())+99), []byte("a part that a crash left"))
			require.Greater(t, len(parts()), 2)
			purge := func() { b.controls.Pipe("s", topics.Control{Action: topics.ActionPurge}) }
			purge()
			require.Empty(t, b.letters.Drain(), "the purge itself is not dead-lettered")
			require.LessOrEqual(t, len(parts()), 1, "the digests of closed turns")
			for _, n := range parts() {
				require.NotContains(t, string(raw.Part("s", n)), "secret")
			}
			for _, batch := range b.batches.Drain() {
				require.NotEqual(t, topics.BatchComplete, batch.Value.State)
			}
			b.say("next", "Hello")
			b.end("next", 2, "end_turn")
			require.Equal(t, topics.BatchComplete, b.batches.Next().Value.State)
			purge()
			require.Empty(t, b.letters.Drain())
		})
	}
}
