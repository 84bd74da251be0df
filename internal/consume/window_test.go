package consume_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/consume"
)

func TestWindowAdvancesOverHandledRecordsWithoutAGap(t *testing.T) {
	var w consume.Window
	for _, offset := range []int64{3, 4, 9, 10} { // 5 to 8 are a transaction's markers
		w.Add(offset)
	}
	left, _ := w.Finish(9)
	require.Zero(t, left)
	left, next := w.Finish(3)
	require.Equal(t, []any{1, int64(4)}, []any{left, next})
	left, next = w.Finish(4)
	require.Equal(t, []any{2, int64(10)}, []any{left, next})
	left, next = w.Finish(10)
	require.Equal(t, []any{1, int64(11)}, []any{left, next})
}

func TestWindowNeverPassesAnUnhandledRecord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		offset, offsets := int64(0), []int64{}
		var w consume.Window
		for range rapid.IntRange(1, 30).Draw(t, "records") {
			offset += rapid.Int64Range(1, 3).Draw(t, "gap")
			offsets = append(offsets, offset)
			w.Add(offset)
		}
		done, gone := map[int64]bool{}, 0
		for _, o := range rapid.Permutation(offsets).Draw(t, "order") {
			done[o] = true
			left, next := w.Finish(o)
			gone += left
			want := 0
			for _, o := range offsets {
				if !done[o] {
					break
				}
				want++
			}
			require.Equal(t, want, gone)
			if left > 0 {
				require.Equal(t, offsets[gone-1]+1, next)
			}
		}
		require.Equal(t, len(offsets), gone)
	})
}
