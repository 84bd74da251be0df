package retry_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/digests"
)

var noon = time.UnixMilli(1_790_000_000_500)

func TestIDsAreRememberedWithinTheWindow(t *testing.T) {
	w := digests.Window{For: time.Minute, Count: 3}
	require.False(t, w.Has(nil, "a", noon))
	entries := w.Add(nil, "a", noon)
	require.True(t, w.Has(entries, "a", noon))
	require.False(t, w.Has(entries, "b", noon))
	require.True(t, w.Has(entries, "a", noon.Add(time.Minute)))
	require.False(t, w.Has(entries, "a", noon.Add(time.Minute+time.Second)), "it is older than the window")
	require.Nil(t, w.Prune(entries, noon.Add(time.Minute+time.Second)))
	require.Equal(t, entries, w.Prune(entries, noon))

	later := w.Add(entries, "b", noon.Add(2*time.Minute))
	require.Equal(t, 1, digests.CountEntries(later), "the oldest has expired")
	require.Equal(t, 1, digests.CountEntries(entries), "entries are not modified")
	for i := range 5 {
		entries = w.Add(entries, strconv.Itoa(i), noon)
	}
	require.Equal(t, 3, digests.CountEntries(entries))
	require.False(t, w.Has(entries, "1", noon), "the oldest is evicted")
	require.True(t, w.Has(entries, "2", noon))
}
