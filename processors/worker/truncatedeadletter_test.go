package worker_test

import (
	"strings"
	"testing"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/topics"
)

func size(l truncate.DeadLetter) (n int) {
	for name, value := range l.Headers {
		n += len(name) + len(value) + 16
	}
	return n + len(l.Key) + len(l.Value) + 64
}

// shortened shortens a letter until it has at most limit bytes.
func shortened(t *testing.T, l truncate.DeadLetter, limit int) (_ truncate.DeadLetter, steps int) {
	t.Helper()
	for ; size(l) > limit; steps++ {
		next, ok := l.Shorter()
		require.True(t, ok, "%d bytes left", size(l))
		l = next
	}
	return l, steps
}

func TestCopyNearTheLimitLosesTheEndOfItsValueOnly(t *testing.T) {
	const limit = 1 << 20
	headers := goka.Headers{"turntable.id": []byte("x"), topics.HeaderErrorReason: []byte("why")}
	value := []byte(strings.Repeat("v", limit-100))
	got, steps := shortened(t, truncate.DeadLetter{Key: "s", Value: value, Headers: headers}, limit)
	require.Equal(t, 1, steps)
	require.Greater(t, len(got.Value), limit-10<<10)
	require.Equal(t, goka.Headers{
		"turntable.id": []byte("x"), topics.HeaderErrorReason: []byte("why"), topics.HeaderErrorTruncated: []byte("1048476"),
	}, got.Headers)
	require.Len(t, headers, 2, "the argument is unchanged")
}

func TestReasonIsKeptWhateverIsTooLarge(t *testing.T) {
	const limit, large = 1000, 1 << 20
	for name, l := range map[string]truncate.DeadLetter{
		"value":      {Key: "s", Value: make([]byte, large)},
		"own header": {Key: "s", Value: []byte("v"), Headers: goka.Headers{"x": make([]byte, large)}},
		"key":        {Key: strings.Repeat("k", large), Headers: goka.Headers{"x": nil}},
		"all": {
			Key: strings.Repeat("k", large), Value: make([]byte, large), Headers: goka.Headers{"x": make([]byte, large)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l.Headers = l.Headers.Merged(goka.Headers{topics.HeaderErrorReason: []byte("why")})
			got, steps := shortened(t, l, limit)
			require.Equal(t, "why", string(got.Headers[topics.HeaderErrorReason]))
			require.Contains(t, got.Headers, topics.HeaderErrorTruncated)
			require.Less(t, steps, 50)
		})
	}
	_, ok := truncate.DeadLetter{Headers: goka.Headers{topics.HeaderErrorTruncated: []byte("0")}}.Shorter()
	require.False(t, ok)
}
