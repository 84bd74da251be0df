package peer_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/peer"
)

// What is loaded is safe to use, and what is not is reported without values.
func FuzzParse(f *testing.F) {
	for _, content := range []string{
		before, after, `{}`, `{"peers":null}`, `{"peers":{"enabled":"TRUE","instanceId":"a","maxHops":1e3}}`,
		`{"peers":{"outbound":[{"id":"a","baseUrl":"https://a.example/","token":"T","allowedAgentIds":[" x "],"timeoutMs":"7"}]}}`,
		`{"peers":{"inboundTokens":[{"id":"a","token":"T","allowedAgentIds":"front"}]}}`,
		`{"peers":{"inboundTokens":[{"id":"a","token":"T","allowedTools":["delegate_to_peer"],"callbackService":"b"}]}}`, `{"a":[[[]]]}`, "\xff", `{"a":1}x`,
	} {
		f.Add([]byte(content))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		s, err := peer.ParseSettings(content, none)
		if err != nil {
			require.ErrorIs(t, err, peer.ErrSettings)
			return
		}
		require.False(t, s.Enabled && s.InstanceID == "")
		require.True(t, s.InboundMaxConcurrent >= 1 && s.InboundMaxConcurrent <= peer.MaxConcurrent)
		require.True(t, s.MaxHops >= 1 && s.MaxHops <= peer.MaxHops)
		for _, o := range s.Outbound {
			require.NotEmpty(t, o.ID)
			require.NotEmpty(t, o.Token.Reveal())
			require.True(t, strings.HasPrefix(strings.ToLower(o.BaseURL), "http"))
			require.True(t, o.Timeout >= peer.MinTimeout && o.Timeout <= peer.MaxTimeout)
			require.NotContains(t, o.AllowedAgents, "")
		}
		for _, in := range s.Inbound {
			require.NotEmpty(t, in.ID)
			require.NotContains(t, in.AllowedAgents, "")
			require.NotContains(t, in.AllowedTools, "")
			require.True(t, in.MaxConcurrent >= 1 && in.MaxConcurrent <= peer.MaxConcurrent)
		}
	})
}
