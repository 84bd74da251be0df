package auth_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/auth"
)

func TestCallerWithoutMayUseMayUseEverySession(t *testing.T) {
	require.True(t, auth.Caller{}.Allowed("s"))
}

func TestCallerMayUseOnlyTheSessionsThatMayUseAllows(t *testing.T) {
	c := auth.Caller{MayUse: func(session string) bool { return session == "mine" }}
	require.True(t, c.Allowed("mine"))
	require.False(t, c.Allowed("other"))
}

func TestCallerWithoutRightsHasAllOfThem(t *testing.T) {
	require.True(t, auth.Caller{}.Can(auth.AllRights))
}

func TestCallerCanDoOnlyWhatItsRightsAllow(t *testing.T) {
	c := auth.Caller{Rights: auth.Read | auth.Answer}
	require.True(t, c.Can(auth.Read))
	require.True(t, c.Can(auth.Read|auth.Answer))
	require.False(t, c.Can(auth.Write))
	require.False(t, c.Can(auth.Read|auth.Write), "all of the rights are needed")
}

func TestCallerExpiresAtItsExpiry(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := auth.Caller{Expires: at}
	require.False(t, c.Expired(at.Add(-time.Nanosecond)))
	require.True(t, c.Expired(at))
	require.False(t, auth.Caller{}.Expired(at))
}

func TestCallerIsNamedByItsSubjectOrUser(t *testing.T) {
	require.Equal(t, "mira", auth.Caller{UserID: "mira"}.Name())
	require.Equal(t, "key 7", auth.Caller{UserID: "mira", Subject: "key 7"}.Name())
}

func TestParseRights(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  auth.Rights
		text  string
	}{
		{[]string{"read"}, auth.Read, "read"},
		{[]string{"control", "read", "read"}, auth.Read | auth.Control, "read,control"},
		{[]string{"all"}, auth.AllRights, "all"},
		{[]string{"read", "write", "answer", "control"}, auth.AllRights, "all"},
	} {
		got, err := auth.ParseRights(c.names...)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
		require.Equal(t, c.text, got.String())
	}
	for _, names := range [][]string{nil, {""}, {"Read"}, {"read", "admin"}, {"read,write"}} {
		_, err := auth.ParseRights(names...)
		require.ErrorIs(t, err, auth.ErrRights, names)
	}
}
