package store_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/store"
)

var _ goka.Codec = store.DueCodec{}

func TestDueSurvivesItsCodec(t *testing.T) {
	for _, at := range []time.Time{
		{}, time.UnixMilli(0), time.UnixMilli(-1), time.UnixMilli(1_700_000_000_123), time.Unix(1, 999_999_999),
	} {
		raw, err := store.DueCodec{}.Encode(store.Due{At: at})
		require.NoError(t, err)
		require.Len(t, raw, 8)
		got, err := store.DueCodec{}.Decode(raw)
		require.NoError(t, err)
		require.Equal(t, store.Due{At: time.UnixMilli(at.UnixMilli()).UTC()}, got)
	}
}

func TestInvalidBytesDecodeToTheZeroDue(t *testing.T) {
	for _, raw := range [][]byte{nil, {}, {1, 2, 3}, make([]byte, 9)} {
		got, err := store.DueCodec{}.Decode(raw)
		require.NoError(t, err)
		require.Equal(t, store.Due{}, got)
	}
}

func TestOtherTypesAreNotEncoded(t *testing.T) {
	_, err := store.DueCodec{}.Encode("secret")
	require.ErrorContains(t, err, "string")
	require.NotContains(t, err.Error(), "secret")
}

func FuzzDecodeNeverFails(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{math.MaxUint8, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := store.DueCodec{}.Decode(raw)
		require.NoError(t, err)
		require.IsType(t, store.Due{}, got)
		_, err = store.DueCodec{}.Encode(got)
		require.NoError(t, err)
	})
}

func ExampleTimerTopic() {
	fmt.Println(store.TimerTopic("agent-streams"))
	// Output: agent-streams-timer
}
