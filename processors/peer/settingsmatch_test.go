package peer

import (
	"crypto/sha256"
	"crypto/subtle"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTokenIsComparedWithAllEntries(t *testing.T) {
	var entries []Inbound
	for _, token := range []string{"a", "b", "c", "d"} {
		entries = append(entries, Inbound{TokenSHA256: sha256.Sum256([]byte(token))})
	}
	for token, want := range map[string]int{"a": 0, "b": 1, "d": 3, "x": -1} {
		compared := 0
		got := match(entries, sha256.Sum256([]byte(token)), func(a, b []byte) int {
			compared++
			return subtle.ConstantTimeCompare(a, b)
		})
		require.Equal(t, want, got, token)
		require.Equal(t, len(entries), compared, "a match does not end the comparison")
	}
	require.Equal(t, -1, match(nil, sha256.Sum256(nil), subtle.ConstantTimeCompare))
}
