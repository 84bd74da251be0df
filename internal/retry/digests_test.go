package retry_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/digests"
)

func TestDifferentListsAndDomainsHaveDifferentDigests(t *testing.T) {
	seen := map[digests.Digest]bool{}
	for _, d := range []digests.Digest{
		digests.Of("a", "x", "y"), digests.Of("a", "xy"), digests.Of("a", "xy", ""), digests.Of("b", "xy"), digests.Of[string]("axy"),
	} {
		require.False(t, seen[d])
		seen[d] = true
	}
	require.Equal(t, digests.Of("a", "x"), digests.Of("a", []byte("x")))
}

// Existing ids and rows contain digests, so they must not change.
func TestDigestsAreStable(t *testing.T) {
	d := digests.Of("turn", "s1", "offset-1")
	require.Equal(t, "640bea9aa272d08e7b725de582322274", hex.EncodeToString(d[:]))
}

// Each part is hashed after its length, whether the parts are concatenated first or hashed one by one.
func TestShortAndLongListsAreHashedAlike(t *testing.T) {
	for length := 900; length < 1100; length++ {
		long := strings.Repeat("x", length)
		whole := []byte("domain")
		for _, part := range []string{"y", long} {
			whole = binary.BigEndian.AppendUint64(whole, uint64(len(part)))
			whole = append(whole, part...)
		}
		sum := sha256.Sum256(whole)
		require.Equal(t, digests.Digest(sum[:digests.Size]), digests.Of("domain", "y", long))
		require.Equal(t, digests.Digest(sum[:digests.Size]), digests.Of("domain", []byte("y"), []byte(long)))
	}
}
