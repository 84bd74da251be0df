package auth_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/auth"
)

func TestSessionsMatchTheirPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, user, session string
		want                   bool
	}{
		{"s", "", "s", true},
		{"s", "", "s1", false},
		{"s", "", "", false},
		{"*", "", "anything:at all", true},
		{"support-*", "", "support-1", true},
		{"support-*", "", "support-", true},
		{"support-*", "", "support", false},
		{"*-eu-*", "", "a-eu-b-eu-c", true},
		{"*-eu-*", "", "a-us-b", false},
		{"a*b*c", "", "a-b-b-c", true},
		{"a**c", "", "ac", true},
		{"a*b", "", "ab-", false},
		{"{user}:*", "mira", "mira:1", true},
		{"{user}:*", "mira", "mira:", true},
		{"{user}:*", "mira", "mira", false},
		{"{user}:*", "mira", "miranda:1", false},
		{"{user}:*", "", ":1", false},
		{"{user}", "mira", "mira", true},
		{"{user}", "mira", "mira:1", false},
		{"eu/{user}/*", "mira", "eu/mira/7", true},
		{"eu/{user}/*", "mira", "us/mira/7", false},
		// A user whose ID has the separator could otherwise be mistaken for another one's session.
		{"{user}:*", "mira:x", "mira:x:1", false},
		{"{user}-*", "mira-x", "mira-x-1", false},
		// What is special in a pattern is not special in a user.
		{"{user}:*", "*", "mira:1", false},
		{"{user}:*", "*", "*:1", true},
	} {
		s, err := auth.ParseSessions(c.pattern)
		require.NoError(t, err, c.pattern)
		require.Equal(t, c.want, s.For(c.user)(c.session), "%+v", c)
	}
	s, err := auth.ParseSessions("a", "{user}:*")
	require.NoError(t, err)
	require.True(t, s.For("b")("a"))
	require.True(t, s.For("b")("b:1"))
	require.False(t, auth.Sessions{}.For("b")("a"), "no pattern, no session")
}

func TestUnsafePatternsAreRejected(t *testing.T) {
	for _, patterns := range [][]string{
		nil,
		{""},
		{"a", ""},
		{"*{user}"},
		{"*:{user}:*"},
		{"{user}*"},
		{"{user}:{user}"},
		{"{users}"},
		{"{user"},
		{"a}"},
		{"a\n"},
		{"a\u202e"},
		{"a\xff"},
		{strings.Repeat("a", 257)},
		make([]string, 65),
	} {
		_, err := auth.ParseSessions(patterns...)
		require.ErrorIs(t, err, auth.ErrPattern, "%q", patterns)
	}
}

// A pattern with many stars must not take exponential time.
func TestMatchOfManyStarsEnds(t *testing.T) {
	s, err := auth.ParseSessions(strings.Repeat("a*", 128))
	require.NoError(t, err)
	require.False(t, s.For("")(strings.Repeat("a", 127)))
}

func FuzzSessions(f *testing.F) {
	f.Add("{user}:*", "mira", "mira:1")
	f.Add("a*b*", "", "axbx")
	f.Fuzz(func(t *testing.T, pattern, user, session string) {
		s, err := auth.ParseSessions(pattern)
		if err != nil {
			require.ErrorIs(t, err, auth.ErrPattern)
			return
		}
		allowed := s.For(user)(session)
		if !s.OfUser() {
			require.Equal(t, allowed, s.For("")(session), "a pattern without {user} is the same for every user")
			if !strings.Contains(pattern, "*") {
				require.Equal(t, pattern == session, allowed)
			}
			return
		}
		if !allowed {
			return
		}
		require.NotEmpty(t, user)
		require.Contains(t, session, user)
		// No other user may use the session: the user is delimited in it.
		prefix, rest, _ := strings.Cut(pattern, "{user}")
		for end := len(prefix); end <= len(session); end++ {
			if other := session[len(prefix):end]; other != user && rest != "" {
				require.False(t, s.For(other)(session), "%q and %q share %q", user, other, session)
			}
		}
	})
}
