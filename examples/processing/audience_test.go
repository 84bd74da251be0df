package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

func TestOnlyOperatorsOrEveryoneSeeAllSessions(t *testing.T) {
	for name, c := range map[string]struct {
		operators, everyone, listens string
		authenticated                bool
		err                          string
	}{
		"off":                         {"", "false", ":1", true, ""},
		"operators":                   {"true", "", ":1", true, ""},
		"everyone":                    {"", "TRUE", ":1", false, ""},
		"operators without keys":      {"true", "", ":1", false, "WS_OPERATORS requires AUTH_KEYS_FILE"},
		"everyone with keys":          {"", "true", ":1", true, "WS_EVERYONE_SEES_ALL shows every session"},
		"operators without WebSocket": {"true", "", "", true, "WS_OPERATORS is set and WS_PORT is not"},
		"everyone without WebSocket":  {"", "true", "", false, "WS_EVERYONE_SEES_ALL is set and WS_PORT is not"},
		"neither true nor false":      {"yes", "", ":1", true, "WS_OPERATORS: want true or false"},
		"everyone: neither":           {"", "all", ":1", true, "WS_EVERYONE_SEES_ALL: want true or false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(operatorsVariable, c.operators)
			t.Setenv(everyoneVariable, c.everyone)
			audience, err := readAudience(c.listens, c.authenticated)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.operators == "true", audience.Operators != nil)
			require.Equal(t, c.everyone == "TRUE", audience.EverySessionToEveryone)
		})
	}
}

// A process does not start with a setting that shows all sessions in place of authentication.
func TestAudienceIsCheckedOnStart(t *testing.T) {
	t.Setenv("AGENT_NAME", "a")
	t.Setenv("WS_PORT", "8001")
	t.Setenv(operatorsVariable, "true")
	_, err := readSettings(zap.NewNop())
	require.ErrorContains(t, err, "WS_OPERATORS requires")
	t.Setenv(operatorsVariable, "")
	t.Setenv(everyoneVariable, "true")
	s, err := readSettings(zap.NewNop())
	require.NoError(t, err)
	require.True(t, s.audience.EverySessionToEveryone)
	t.Setenv("PARTS", "turn")
	s, err = readSettings(zap.NewNop())
	require.NoError(t, err)
	require.Contains(t, s.withoutEffect(), everyoneVariable)
}
