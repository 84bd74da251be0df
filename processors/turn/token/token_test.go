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
	verifier := verifierOf(t, v.Secrets...)
	for _, c := range v.Vectors {
		t.Run(c.Name, func(t *testing.T) {
			if c.Claims != nil && c.Claims.EXP <= 0 {
				_, err := verifier.Verify(c.Token, time.Unix(v.Now, 0))
				require.Equal(t, token.NoExpiry, err)
			}
			got, err := verifier.AllowNoExpiry().Verify(c.Token, time.Unix(v.Now, 0))
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

const secret = "a secret of at least thirty-two bytes"

func verifierOf(t testing.TB, secrets ...string) token.Verifier {
	t.Helper()
	v, err := token.NewVerifier(secrets...)
	require.NoError(t, err)
	return v
}

func TestMintedTokensAreVerified(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	name := `a "quoted" name`
	for _, c := range []token.Claims{
		{},
		{SessionID: "s", ToolUseID: "t"},
		{SessionID: "ü\n\"", ToolUseID: "⚓", Name: &name, TotalTools: 3, CallID: "t/1/tool-use/0", IssuedAt: now},
	} {
		c.Expires = now.Add(time.Hour)
		minted, err := token.Mint(secret, c)
		require.NoError(t, err)
		require.NotContains(t, minted, "=")
		got, err := verifierOf(t, secret).Verify(minted, now)
		require.NoError(t, err)
		require.Equal(t, c, got)
	}
}

func TestMintRejectsInvalidClaims(t *testing.T) {
	later := time.Unix(1_790_000_000, 0)
	for name, c := range map[string]struct {
		secret string
		claims token.Claims
	}{
		"blank secret":       {strings.Repeat(" ", 32), token.Claims{Expires: later}},
		"short secret":       {secret[:31], token.Claims{Expires: later}},
		"no expiry":          {secret, token.Claims{}},
		"expiry of 1970":     {secret, token.Claims{Expires: time.Unix(0, 0)}},
		"negative total":     {secret, token.Claims{Expires: later, TotalTools: -1}},
		"session not UTF-8":  {secret, token.Claims{Expires: later, SessionID: "\xff"}},
		"tool use not UTF-8": {secret, token.Claims{Expires: later, ToolUseID: "\xff"}},
		"call not UTF-8":     {secret, token.Claims{Expires: later, CallID: "\xff"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := token.Mint(c.secret, c.claims)
			require.ErrorIs(t, err, token.ErrMint)
			require.NotContains(t, err.Error(), "\xff")
			require.NotContains(t, err.Error(), secret[:31])
		})
	}
}

func TestShortSecretsAreRejected(t *testing.T) {
	for _, short := range []string{"x", secret[:31]} {
		_, err := token.NewVerifier("", secret, short)
		require.ErrorIs(t, err, token.ErrSecret)
		require.ErrorContains(t, err, "secret 3: ")
		require.NotContains(t, err.Error(), short)
	}
	require.True(t, verifierOf(t, secret[:32]).Configured())
}

func TestWithoutASecretEveryTokenIsNotConfigured(t *testing.T) {
	v := verifierOf(t, "", " \t")
	require.False(t, v.Configured())
	for text, want := range map[string]token.Rejection{
		"": token.Missing, "x": token.NotConfigured, "a.b": token.NotConfigured,
	} {
		_, err := v.Verify(text, time.Now())
		require.Equal(t, want, err)
	}
}

func TestSecretCanBeRotated(t *testing.T) {
	const other = "another secret of at least 32 bytes"
	now := time.Unix(1_790_000_000, 0)
	minted, err := token.Mint(secret, token.Claims{Expires: now})
	require.NoError(t, err)
	unnamed := token.Signed(secret, `{"session_id":"s","tool_use_id":"t","exp":1790000000}`) // by a build without key IDs
	for name, c := range map[string]struct {
		secrets []string
		want    error
	}{
		"before":       {[]string{secret}, nil},
		"meanwhile":    {[]string{other, secret}, nil},
		"other order":  {[]string{secret, other}, nil},
		"after":        {[]string{other}, token.BadSignature},
		"blank before": {[]string{"", secret}, nil},
	} {
		for _, text := range []string{minted, unnamed} {
			_, err := verifierOf(t, c.secrets...).Verify(text, now)
			require.Equal(t, c.want, err, name)
		}
	}
}

func TestTokensAreBoundToTheirAgent(t *testing.T) {
	harbor, now := "harbor", time.Unix(1_790_000_000, 0)
	v := verifierOf(t, secret).For("harbor")
	for _, c := range []struct {
		agent *string
		want  error
	}{{&harbor, nil}, {nil, token.OtherAgent}, {new(string), token.OtherAgent}} {
		minted, err := token.Mint(secret, token.Claims{Agent: c.agent, Expires: now})
		require.NoError(t, err)
		_, err = v.Verify(minted, now)
		require.Equal(t, c.want, err)
	}
}
