package token_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/turn/token"
)

// FuzzVerify checks that a token is either rejected with one of the known Rejections, or can be minted again from its claims.
func FuzzVerify(f *testing.F) {
	v := read(f)
	for _, c := range v.Vectors {
		f.Add(c.Token)
	}
	verifier := verifierOf(f, v.Secrets...).AllowNoExpiry()
	now := time.Unix(v.Now, 0)
	f.Fuzz(func(t *testing.T, text string) {
		claims, err := verifier.Verify(text, now)
		if err != nil {
			var r token.Rejection
			require.True(t, errors.As(err, &r))
			require.Zero(t, claims)
			return
		}
		if claims.Expires.IsZero() {
			return // Verify accepts it, but Mint rejects it
		}
		minted, err := token.Mint(v.Secrets[0], claims)
		require.NoError(t, err)
		again, err := verifier.Verify(minted, now)
		require.NoError(t, err)
		require.Equal(t, claims, again)
	})
}

// FuzzPayload checks the same for signed payloads.
func FuzzPayload(f *testing.F) {
	for _, payload := range []string{
		`{"session_id":"s","tool_use_id":"t","total_tools":1,"iat":1,"exp":2}`, `{"session_id":7.0e3}`,
		`{"session_id":"s","tool_use_id":"t","exp":2000000000,"call_id":"f/1/tool-use/0","kid":"x"}`, "null", `{"exp":"`,
	} {
		f.Add(payload)
	}
	f.Fuzz(func(t *testing.T, payload string) {
		verifier, now := verifierOf(t, secret).AllowNoExpiry(), time.Unix(1_790_000_000, 0)
		claims, err := verifier.Verify(token.Signed(secret, payload), now)
		if err != nil {
			if !strings.Contains(payload, "kid") && !strings.Contains(payload, `\`) { // the name may be escaped
				require.NotErrorIs(t, err, token.BadSignature)
			}
			return
		}
		if claims.TotalTools < 0 || claims.Expires.IsZero() {
			return // Verify accepts it, but Mint rejects it
		}
		minted, err := token.Mint(secret, claims)
		require.NoError(t, err)
		again, err := verifier.Verify(minted, now)
		require.NoError(t, err)
		require.Equal(t, claims, again)
	})
}
