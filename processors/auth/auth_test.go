package auth_test

import (
	"testing"

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
