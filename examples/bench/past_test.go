package main

import (
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
)

func TestHistoryHasTheRequestedLength(t *testing.T) {
	p := newPast(smallPast)
	for bytes := smallPast; bytes < smallPast+4*pastMessage; bytes += 7 {
		p.bytes = bytes
		s := newBook("s", 3, 0, p).all[2]
		raw := append(append([]byte{'['}, p.of(s)...), ']')
		require.Len(t, raw, bytes)
		var messages []struct {
			Role string `json:"role"`
		}
		require.NoError(t, json.Unmarshal(raw, &messages))
		for i, m := range messages {
			require.Equal(t, []string{"user", "assistant"}[i%2], m.Role)
		}
		require.Equal(t, "assistant", messages[len(messages)-1].Role)
	}
}
