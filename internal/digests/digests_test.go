package digests_test

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/digests"
)

func TestListsAndDomainsAreToldApart(t *testing.T) {
	seen := map[digests.Digest]bool{}
	for _, d := range []digests.Digest{
		digests.Of("a", "x", "y"), digests.Of("a", "xy"), digests.Of("a", "xy", ""), digests.Of("b", "xy"), digests.Of[string]("axy"),
	} {
		require.False(t, seen[d])
		seen[d] = true
	}
	require.Equal(t, digests.Of("a", "x"), digests.Of("a", []byte("x")))
}

// Ids and rows that exist are made of them.
func TestDigestsStayWhatTheyAre(t *testing.T) {
	d := digests.Of("turn", "s1", "offset-1")
	require.Equal(t, "640bea9aa272d08e7b725de582322274", hex.EncodeToString(d[:]))
}
