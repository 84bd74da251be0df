package token_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/turn/token"
)

// vectors are tokens from testdata/vectors.py, an independent implementation.
type vectors struct {
	Now     int64
	Secrets []string
	Minted  struct {
		Claims claims
		Token  string
	}
	Vectors []struct {
		Name   string
		Token  string
		Claims *claims
		Reason string
	}
}

type claims struct {
	SessionID  string  `json:"session_id"`
	ToolUseID  string  `json:"tool_use_id"`
	ToolID     *string `json:"tool_id"`
	Name       *string `json:"name"`
	TotalTools int     `json:"total_tools"`
	Agent      *string `json:"agent"`
	CallID     string  `json:"call_id"`
	IAT        int64   `json:"iat"`
	EXP        int64   `json:"exp"`
}

func (c claims) ours() token.Claims {
	return token.Claims{
		SessionID: c.SessionID, ToolUseID: c.ToolUseID, ToolID: c.ToolID, Name: c.Name, TotalTools: c.TotalTools,
		Agent: c.Agent, CallID: c.CallID, IssuedAt: second(c.IAT), Expires: second(c.EXP),
	}
}

func second(s int64) time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(s, 0)
}

func read(t testing.TB) vectors {
	t.Helper()
	raw, err := os.ReadFile("testdata/vectors.json")
	require.NoError(t, err)
	var v vectors
	require.NoError(t, json.Unmarshal(raw, &v, json.MatchCaseInsensitiveNames(true)))
	require.NotEmpty(t, v.Vectors)
	return v
}

func TestVerifyAgreesWithAnotherImplementation(t *testing.T) {
	v := read(t)
	verifier := token.NewVerifier(v.Secrets...)
	for _, c := range v.Vectors {
		t.Run(c.Name, func(t *testing.T) {
			got, err := verifier.Verify(c.Token, time.Unix(v.Now, 0))
			if c.Claims == nil {
				require.Equal(t, token.Rejection(c.Reason), err)
				require.Zero(t, got)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.Claims.ours(), got)
		})
	}
}

func TestMintAgreesWithAnotherImplementation(t *testing.T) {
	v := read(t)
	got, err := token.Mint(v.Secrets[0], v.Minted.Claims.ours())
	require.NoError(t, err)
	require.Equal(t, v.Minted.Token, got)
}

func TestMintedTokensAreVerified(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	name := `a "quoted" name`
	for _, c := range []token.Claims{
		{},
		{SessionID: "s", ToolUseID: "t"},
		{SessionID: "ü\n\"", ToolUseID: "⚓", Name: &name, TotalTools: 3, IssuedAt: now, Expires: now.Add(time.Hour)},
	} {
		minted, err := token.Mint("secret", c)
		require.NoError(t, err)
		require.NotContains(t, minted, "=")
		got, err := token.NewVerifier("secret").Verify(minted, now)
		require.NoError(t, err)
		require.Equal(t, c, got)
	}
}

func TestMintRejectsInvalidClaims(t *testing.T) {
	for _, c := range []struct {
		secret string
		claims token.Claims
	}{
		{"  ", token.Claims{}},
		{"secret", token.Claims{TotalTools: -1}},
		{"secret", token.Claims{SessionID: "\xff"}},
		{"secret", token.Claims{CallID: "\xff"}},
	} {
		_, err := token.Mint(c.secret, c.claims)
		require.ErrorIs(t, err, token.ErrMint)
		require.NotContains(t, err.Error(), "\xff")
	}
}

func TestWithoutASecretEveryTokenIsNotConfigured(t *testing.T) {
	v := token.NewVerifier("", " \t")
	require.False(t, v.Configured())
	for text, want := range map[string]token.Rejection{
		"": token.Missing, "x": token.NotConfigured, "a.b": token.NotConfigured,
	} {
		_, err := v.Verify(text, time.Now())
		require.Equal(t, want, err)
	}
}

func TestSecretCanBeRotated(t *testing.T) {
	minted, err := token.Mint("old", token.Claims{})
	require.NoError(t, err)
	for secrets, want := range map[string]error{"old": nil, "new old": nil, "old new": nil, "new": token.BadSignature} {
		_, err := token.NewVerifier(strings.Fields(secrets)...).Verify(minted, time.Now())
		require.Equal(t, want, err, secrets)
	}
}

func TestTokensAreBoundToTheirAgent(t *testing.T) {
	harbor := "harbor"
	v := token.NewVerifier("secret").For("harbor")
	for _, c := range []struct {
		agent *string
		want  error
	}{{&harbor, nil}, {nil, token.OtherAgent}, {new(string), token.OtherAgent}} {
		minted, err := token.Mint("secret", token.Claims{Agent: c.agent})
		require.NoError(t, err)
		_, err = v.Verify(minted, time.Now())
		require.Equal(t, c.want, err)
	}
}
