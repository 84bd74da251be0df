package processors

import (
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

// A record that processors/archive has written again, at another place, is the same cause: it is not handled once more as a new one.
func TestRecordThatIsWrittenAgainKeepsItsCauseID(t *testing.T) {
	first := record{topic: "in", partition: 3, offset: 7, timestamp: time.UnixMilli(1), raw: []byte("1")}
	moved := first
	moved.partition, moved.offset = 1, 2
	require.NotEqual(t, causeID(&first), causeID(&moved))
	moved.headers = goka.Headers{topics.HeaderFirstAt: []byte("3/7")}
	require.Equal(t, causeID(&first), causeID(&moved))
	for _, text := range []string{"", "3", "3/", "/7", "x/7", "3/7/1", "99999999999/7"} {
		other := first
		other.headers = goka.Headers{topics.HeaderFirstAt: []byte(text)}
		require.Equal(t, causeID(&first), causeID(&other), text)
	}
	moved.headers[topics.HeaderID] = []byte("an-id")
	require.Equal(t, "an-id", causeID(&moved))
}
