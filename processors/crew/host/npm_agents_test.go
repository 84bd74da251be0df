//go:build agents

package host

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/testing/kill"
)

// The agents that users install are told by a model to run a command. They run it only if a person allows it.
func TestInstalledAgents(t *testing.T) {
	for _, agent := range slices.Sorted(maps.Keys(npmAgents(""))) {
		t.Run(agent, func(t *testing.T) {
			for name, test := range npmCases {
				t.Run(name, func(t *testing.T) { test(t, agent) })
			}
		})
	}
}

var npmCases = map[string]func(t *testing.T, agent string){
	"allow": func(t *testing.T, agent string) {
		c := newNpmCase(t, agent, longCommand)
		c.asked()
		require.Empty(t, c.decide(allow).Error)
		made, err := os.ReadFile(c.path("made.txt"))
		require.NoError(t, err)
		require.Equal(t, "yestail", string(made))
		c.m.note(func() { require.NotEmpty(t, c.m.results) })
	},
	"deny": func(t *testing.T, agent string) {
		c := newNpmCase(t, agent, longCommand)
		c.asked()
		c.decide(deny)
		require.NoFileExists(t, c.path("made.txt"))
	},
	"nobody answers": func(t *testing.T, agent string) {
		c := newNpmCase(t, agent, longCommand)
		c.asked()
		c.decide(expire)
		require.NoFileExists(t, c.path("made.txt"))
	},
	"interrupt of a question": func(t *testing.T, agent string) {
		c := newNpmCase(t, agent, longCommand)
		c.asked()
		c.act(crewbody.Cancel{AgentID: agentID, Run: c.run, PromptID: askCommand, SessionID: c.session})
		require.Equal(t, "cancelled", await[crewbody.TurnEnded](c.rig, 1)[0].StopReason)
		require.NoFileExists(t, c.path("made.txt"))
	},
	"interrupt of a model call": func(t *testing.T, agent string) {
		c := newNpmCase(t, agent, longCommand)
		c.prompt(c.run, c.session, askNothing)
		require.Eventually(t, func() (calls bool) {
			c.m.note(func() { calls = c.m.hanging > 0 })
			return calls
		}, waitLimit, 5*time.Millisecond)
		c.act(crewbody.Cancel{AgentID: agentID, Run: c.run, PromptID: askNothing, SessionID: c.session})
		require.Equal(t, "cancelled", await[crewbody.TurnEnded](c.rig, 1)[0].StopReason)
	},
	"end of the host": func(t *testing.T, agent string) {
		c := newNpmCase(t, agent, runsLong)
		c.asked()
		c.act(func() crewbody.Answer {
			q := said[crewbody.Permission](c.rig)[0]
			a := allow(q)
			a.AgentID, a.Run, a.RequestID = agentID, c.run, q.RequestID
			return a
		}())
		exists(t, c.path("running.txt"))
		c.stop()
		c.gone(t)
	},
	"kill of the host": func(t *testing.T, agent string) {
		m := startModel(t, runsLong)
		h := newNpmHost(t, agent, m)
		dir := t.TempDir()
		host := kill.Start(t, npmProgram, npmChild{h.Argv, h.Env, dir})
		exists(t, filepath.Join(dir, "running.txt"))
		require.NoError(t, host.Kill())
		h.gone(t)
	},
}

// OpenCode asks although its repository permits everything in each of the ways that it has.
func TestInstalledOpenCodeAsksWhateverItsRepositorySays(t *testing.T) {
	const all = `{"permission":"allow"}`
	for name, config := range map[string]string{
		"permission":    all,
		"agent":         `{"agent":{"build":` + all + `}}`,
		"mode":          `{"mode":{"build":` + all + `}}`,
		"default agent": `{"default_agent":"own","agent":{"own":{"mode":"primary","permission":"allow"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			c := newNpmCase(t, "opencode", longCommand, func(c *npmCase) {
				require.NoError(t, os.WriteFile(c.path("opencode.json"), []byte(config), 0o600))
			})
			c.asked()
			c.decide(deny)
			require.NoFileExists(t, c.path("made.txt"))
		})
	}
}

// Codex runs commands for which its model asks no permission in a sandbox in which they change nothing.
func TestInstalledCodexChangesNothingWithoutAQuestion(t *testing.T) {
	c := newNpmCase(t, "codex", longCommand, func(c *npmCase) { c.m.sandboxed = true })
	c.prompt(c.run, c.session, askCommand)
	c.decide(deny)
	require.NoFileExists(t, c.path("made.txt"))
	c.m.note(func() { require.NotEmpty(t, c.m.results) })
}
