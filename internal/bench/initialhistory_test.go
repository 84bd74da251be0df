package main

import (
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
)

func TestHistoryHasTheRequestedLength(t *testing.T) {
	p := newInitialHistory(minHistory)
	for bytes := minHistory; bytes < minHistory+4*historyMessageSize; bytes += 7 {
		p.bytes = bytes
		s := newConversations("s", 3, 0, p).all[2]
		raw := append(append([]byte{'['}, p.elements(s)...), ']')
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
