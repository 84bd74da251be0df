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
		options                      int
		err                          string
	}{
		"off":                         {"", "false", ":1", true, 0, ""},
		"operators":                   {"true", "", ":1", true, 1, ""},
		"everyone":                    {"", "TRUE", ":1", false, 1, ""},
		"operators without keys":      {"true", "", ":1", false, 0, "WS_OPERATORS requires AUTH_KEYS_FILE"},
		"everyone with keys":          {"", "true", ":1", true, 0, "WS_EVERYONE_SEES_ALL shows every session"},
		"operators without WebSocket": {"true", "", "", true, 0, "WS_OPERATORS is set and WS_PORT is not"},
		"everyone without WebSocket":  {"", "true", "", false, 0, "WS_EVERYONE_SEES_ALL is set and WS_PORT is not"},
		"neither true nor false":      {"yes", "", ":1", true, 0, "WS_OPERATORS: want true or false"},
		"everyone: neither":           {"", "all", ":1", true, 0, "WS_EVERYONE_SEES_ALL: want true or false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(operatorsVariable, c.operators)
			t.Setenv(everyoneVariable, c.everyone)
			options, err := readAudience(c.listens, c.authenticated)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Len(t, options, c.options)
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
	require.Len(t, s.audience, 1)
	t.Setenv("PARTS", "turn")
	s, err = readSettings(zap.NewNop())
	require.NoError(t, err)
	require.Contains(t, s.withoutEffect(), everyoneVariable)
}
