package host

import (
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/crewtest"
)

func TestAgentThatTakesAnAPIKeyIsSignedIn(t *testing.T) {
	for _, session := range []string{"", "s"} {
		for method, want := range map[string]string{"api-key": "", "codex-api-key": "", "phone": `"API key"`} {
			r := newRig(t, goAgent(t, crewtest.Script{SignIn: true, SignInBy: method, Load: true}), quickStop)
			r.act(crewbody.Start{AgentID: agentID, Cwd: r.dir, SessionID: session})
			if want == "" {
				require.Equal(t, session != "", await[crewbody.SessionReady](r, 1)[0].Resumed)
				continue
			}
			require.Contains(t, await[crewbody.StartFailed](r, 1)[0].Error, want)
			await[crewbody.Exited](r, 1)
		}
	}
	require.True(t, authMethod{Type: "env_var"}.byKey())
}

func TestOpenCodeIsToldToAsk(t *testing.T) {
	variables := func(change func(*Config)) string {
		file := t.TempDir() + "/env"
		argv := append([]string{"sh", "-c", "env >" + file + `; exec "$0" "$@"`}, goAgent(t, crewtest.Script{Modes: &crewtest.Modes{
			Current: "build", Available: []crewtest.Mode{{ID: "build", Name: "build"}},
		}})...)
		r := newRig(t, argv, quickStop, func(_ *rig, c *Config, _ *times) { change(c) })
		r.started()
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		return string(raw)
	}
	asks := func(env string) map[string]any {
		_, value, ok := strings.Cut(env, "\nOPENCODE_PERMISSION=")
		require.True(t, ok)
		value, _, _ = strings.Cut(value, "\n")
		var rules map[string]any
		require.NoError(t, json.Unmarshal([]byte(value), &rules))
		return rules
	}
	env := "\n" + variables(func(*Config) {})
	for _, tool := range []string{"*", "bash", "edit", "task", "webfetch", "external_directory"} {
		require.Equal(t, "ask", asks(env)[tool], tool)
	}
	require.Contains(t, env, "\nOPENCODE_CONFIG_CONTENT={\"agent\":{\"build\":{\"permission\":{\"*\":\"ask\"")

	t.Setenv("OPENCODE_CONFIG_CONTENT", "mine")
	env = "\n" + variables(func(c *Config) { c.Env = append(c.Env, "OPENCODE_*") })
	require.Equal(t, "ask", asks(env)["bash"])
	require.Contains(t, env, "\nOPENCODE_CONFIG_CONTENT=mine\n")
	require.NotContains(t, variables(func(c *Config) { c.Modes = map[string]string{"": "build"} }), "OPENCODE", "its mode is configured")
}
