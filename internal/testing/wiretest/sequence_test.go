package wiretest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A long history may be sent without its oldest whole exchanges, a shorter one may not.
func TestOnlyALongHistoryMayLackItsOldestExchanges(t *testing.T) {
	list := func(size int) []json.RawMessage {
		said := func(role string, n int) json.RawMessage {
			return json.RawMessage(`{"role":"` + role + `","content":"` + strings.Repeat("x", n) + `"}`)
		}
		return []json.RawMessage{
			said("user", 1), said("assistant", size), said("user", 2), said("assistant", 3), said("tool", 4), said("assistant", 5),
		}
	}
	for size, allowed := range map[int][]int{1000: {0}, longHistory: {0, 2, 6}} {
		messages := list(size)
		whole := sequenceOf(messages)
		var got []int
		for from := range len(messages) + 1 {
			part := sequenceOf(messages[from:])
			require.Equal(t, whole.continues(part, canonical), whole.continues(part, exact))
			if whole.continues(part, exact) {
				got = append(got, from)
			}
		}
		require.Equal(t, allowed, got, "history of %d bytes and more", size)
	}
}
