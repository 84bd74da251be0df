package timer_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/timer"
)

var _ goka.Codec = timer.Codec{}

func TestDueSurvivesItsCodec(t *testing.T) {
	for _, at := range []time.Time{
		{}, time.UnixMilli(0), time.UnixMilli(-1), time.UnixMilli(1_700_000_000_123), time.Unix(1, 999_999_999),
	} {
		raw, err := timer.Codec{}.Encode(timer.Due{At: at})
		require.NoError(t, err)
		require.Len(t, raw, 8)
		got, err := timer.Codec{}.Decode(raw)
		require.NoError(t, err)
		require.Equal(t, timer.Due{At: time.UnixMilli(at.UnixMilli()).UTC()}, got)
	}
}

func TestInvalidBytesDecodeToTheZeroDue(t *testing.T) {
	for _, raw := range [][]byte{nil, {}, {1, 2, 3}, make([]byte, 9)} {
		got, err := timer.Codec{}.Decode(raw)
		require.NoError(t, err)
		require.Equal(t, timer.Due{}, got)
	}
}

func TestOtherTypesAreNotEncoded(t *testing.T) {
	_, err := timer.Codec{}.Encode("secret")
	require.ErrorContains(t, err, "string")
	require.NotContains(t, err.Error(), "secret")
}

func FuzzDecodeNeverFails(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{math.MaxUint8, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := timer.Codec{}.Decode(raw)
		require.NoError(t, err)
		require.IsType(t, timer.Due{}, got)
		_, err = timer.Codec{}.Encode(got)
		require.NoError(t, err)
	})
}

func ExampleTopic() {
	fmt.Println(timer.Topic("agent-streams"))
	// Output: agent-streams-timer
}
