package worker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
	"github.com/turntable-streams/turntable/processors/worker/internal/consumer/progress"
)

func TestCheckpointIsReadBack(t *testing.T) {
	until := time.UnixMilli(1_763_820_000_123)
	c := progress.Checkpoint{
		Next: 1000,
		Done: []progress.Span{{First: 1001, Last: 1001}, {First: 1003, Last: 1400}},
		Open: []progress.Open{
			{Offset: 1000, Attempts: 3, Until: until.Add(time.Minute), Runner: progress.RunnerOf("a")}, {Offset: 1002, Attempts: 1}, {Offset: 1500, Until: until, Runner: progress.RunnerOf("b")},
		},
		Reserved: 2400,
		Notes:    []progress.Note{{Place: progress.PlaceOf("in", 7), Offset: 12, Until: until}},
	}
	got, ok := progress.Decode(1000, c.Encode(progress.MaxMetadata))
	require.True(t, ok)
	require.Equal(t, c, got)
}

func TestForeignMetadataIsIgnored(t *testing.T) {
	ours := progress.Checkpoint{Next: 7, Reserved: 20}.Encode(progress.MaxMetadata)
	for name, metadata := range map[string]string{
		"none": "", "another program's": "host-1", "another version's": strings.Replace(ours, ".1:", ".2:", 1),
		"damaged": ours[:len(ours)-1], "longer": ours + "AAAA", "not base64": ours + "!",
	} {
		_, ok := progress.Decode(7, metadata)
		require.False(t, ok, name)
	}
	_, ok := progress.Decode(8, ours)
	require.False(t, ok, "metadata that was copied to another offset")
}

func TestAnyMetadataIsDecodedWithoutAPanic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ours := []byte(progress.Checkpoint{
			Next: 3, Done: []progress.Span{{First: 5, Last: 9}}, Open: []progress.Open{{Offset: 3, Attempts: 2, Until: time.UnixMilli(9)}},
		}.Encode(progress.MaxMetadata))
		at := rapid.IntRange(19, len(ours)-1).Draw(t, "at")
		copy(ours[at:], rapid.SliceOfN(rapid.Byte(), 1, 12).Draw(t, "damage"))
		c, ok := progress.Decode(3, string(ours))
		for i, s := range c.Done {
			require.True(t, ok && s.First >= 3 && s.First <= s.Last && (i == 0 || s.First > c.Done[i-1].Last))
		}
	})
}

func TestLargeCheckpointIsCutFromTheEnd(t *testing.T) {
	c := progress.Checkpoint{Next: 1 << 40}
	for i := range int64(2000) {
		first := c.Next + 3*i + 1
		c.Done = append(c.Done, progress.Span{First: first, Last: first + i%2})
	}
	metadata := c.Encode(progress.MaxMetadata)
	require.LessOrEqual(t, len(metadata), progress.MaxMetadata)
	got, ok := progress.Decode(c.Next, metadata)
	require.True(t, ok)
	require.Greater(t, len(got.Done), 1000, "every second record of the default window fits twice")
	require.Equal(t, c.Done[:len(got.Done)], got.Done)
	require.Empty(t, c.Encode(40))
}
