package host

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/crewtest"
)

// claude are the modes of claude-agent-acp as it opens a session.
var claude = []crewtest.Mode{
	{ID: "auto", Name: "Auto", Description: "Use a model classifier to approve/deny permission prompts"},
	{ID: "default", Name: "Default", Description: "Standard behavior, prompts for dangerous operations"},
	{ID: "acceptEdits", Name: "Accept Edits", Description: "Auto-accept file edit operations"},
	{ID: "plan", Name: "Plan Mode", Description: "Planning mode, no actual tool execution"},
	{ID: "dontAsk", Name: "Don't Ask", Description: "Don't prompt for permissions, deny if not pre-approved"},
	{ID: "bypassPermissions", Name: "Bypass Permissions", Description: "Bypass all permission checks"},
}

func TestTheModeInWhichAnAgentAsksIsChosen(t *testing.T) {
	for name, c := range map[string]struct {
		current    string
		list       []crewtest.Mode
		configured string
		want       string // empty: refused
	}{
		"claude": {"auto", claude, "", "default"},
		"codex": {"agent", []crewtest.Mode{
			{ID: "read-only", Name: "Read-only", Description: "Requires approval to edit files and access the internet."},
			{ID: "workspace-write", Name: "Workspace access", Description: "Edit workspace files; ask before writing outside the workspace."},
			{ID: "agent", Name: "Auto review", Description: "Only ask for actions detected as potentially unsafe"},
			{ID: "agent-full-access", Name: "Full access", Description: "Unrestricted access to the internet and any file"},
		}, "", "read-only"},
		"gemini": {"yolo", []crewtest.Mode{
			{ID: "default", Name: "Default", Description: "Prompts for approval"},
			{ID: "autoEdit", Name: "Auto Edit", Description: "Auto-approves edit tools"},
			{ID: "yolo", Name: "YOLO", Description: "Auto-approves all tools"},
			{ID: "plan", Name: "Plan", Description: "Read-only mode"},
		}, "", "default"},
		"opencode":              {"build", []crewtest.Mode{{ID: "build", Name: "build"}, {ID: "plan", Name: "plan"}}, "", "build"},
		"unknown, not current":  {"turbo", []crewtest.Mode{{ID: "turbo", Name: "Turbo", Description: "Runs everything without asking"}, {ID: "calm", Name: "Calm"}}, "", "calm"},
		"a description wins":    {"default", []crewtest.Mode{{ID: "default", Name: "Default", Description: "Approves everything"}, {ID: "x", Name: "X"}}, "", "x"},
		"plan is the last one":  {"auto", []crewtest.Mode{{ID: "auto", Name: "a"}, {ID: "plan", Name: "Plan"}, {ID: "x", Name: "X"}}, "", "x"},
		"only approving":        {"auto", []crewtest.Mode{{ID: "auto", Name: "Auto"}, {ID: "yolo", Name: "YOLO"}}, "", ""},
		"not listed":            {"yolo", nil, "", ""},
		"configured":            {"default", claude, "acceptEdits", "acceptEdits"},
		"configured, not there": {"default", claude, "none", ""},
	} {
		raw := encoded(crewtest.Modes{Current: c.current, Available: c.list})
		got, err := offered(opened{Modes: raw}).choose(c.configured)
		require.Equal(t, c.want, got, name)
		require.Equal(t, c.want == "", err != nil, name)
	}
	for _, list := range [][]crewtest.Mode{{{ID: "own", Name: "own"}, {ID: "build", Name: "build"}}, {{ID: "own", Name: "own"}}} {
		got, err := offered(opened{Modes: encoded(crewtest.Modes{Current: "own", Available: list})}).choose(knownModes["OpenCode"])
		require.Equal(t, len(list) < 2, err != nil, "a repository can take the mode away")
		require.Equal(t, err == nil, got == "build")
	}
	m := offered(opened{Options: rawOf(`[{"id":"model"},{"id":"mode","category":"mode","currentValue":"auto","options":[{"value":"auto","name":"Auto"},{"value":"default","name":"D"}]}]`)})
	got, err := m.choose("")
	require.NoError(t, err)
	method, params := m.setting("s", got)
	require.Equal(t, "session/set_config_option", method)
	require.Equal(t, map[string]any{"sessionId": "s", "configId": "mode", "value": "default"}, params)
	require.Empty(t, offered(opened{}).list)
}

func modesOf(current string, rules ...crewtest.Rule) crewtest.Script {
	return crewtest.Script{Modes: &crewtest.Modes{Current: current, Available: claude}, Rules: rules, Load: true}
}

var tellMode = crewtest.Rule{Steps: []crewtest.Step{{Text: "mode {{mode}};"}}}

func TestHostSetsTheModeInWhichTheAgentAsks(t *testing.T) {
	r := newRig(t, goAgent(t, modesOf("auto", tellMode)), quickStop)
	run, session := r.started()
	require.Contains(t, string(said[crewbody.SessionReady](r)[0].Modes), `"currentModeId":"default"`)
	r.prompt(run, session, "p")
	await[crewbody.TurnEnded](r, 1)
	require.Equal(t, "mode default;", r.text())

	r = newRig(t, goAgent(t, modesOf("auto", tellMode)), quickStop)
	run = r.act(crewbody.Start{AgentID: agentID, Cwd: r.dir, SessionID: "s"})
	await[crewbody.SessionReady](r, 1)
	r.prompt(run, "s", "p")
	await[crewbody.TurnEnded](r, 1)
	require.Equal(t, "mode default;", r.text(), "a session that is continued")

	r = newRig(t, goAgent(t, modesOf("default", tellMode)), quickStop, func(_ *rig, c *Config, _ *times) {
		c.Modes = map[string]string{"": "acceptEdits"}
	})
	run, session = r.started()
	r.prompt(run, session, "p")
	await[crewbody.TurnEnded](r, 1)
	require.Equal(t, "mode acceptEdits;", r.text(), "it is configured")
}

func TestAgentThatOnlyApprovesIsNotStarted(t *testing.T) {
	for name, script := range map[string]crewtest.Script{
		"no other mode": {Modes: &crewtest.Modes{Current: "auto", Available: claude[:1]}},
		"refuses":       {Modes: &crewtest.Modes{Current: "auto", Available: claude}, KeepMode: true},
	} {
		r := newRig(t, goAgent(t, script), quickStop)
		r.act(crewbody.Start{AgentID: agentID, Cwd: r.dir})
		failed := await[crewbody.StartFailed](r, 1)[0]
		require.Contains(t, failed.Error, "mode", name)
		await[crewbody.Exited](r, 1)
		require.Empty(t, said[crewbody.SessionReady](r), name)
	}
}

func TestModeThatApprovesIsResetOrTheAgentIsStopped(t *testing.T) {
	change := func(id string) crewtest.Step {
		return crewtest.Step{Update: []byte(`{"sessionUpdate":"current_mode_update","currentModeId":"` + id + `"}`)}
	}
	changing := modesOf("default", crewtest.Rule{Match: "go", Steps: []crewtest.Step{change("plan"), change("auto")}}, tellMode)
	r := newRig(t, goAgent(t, changing), quickStop)
	run, session := r.started()
	for i := range maxResets {
		r.prompt(run, session, "go")
		await[crewbody.TurnEnded](r, i+1)
		require.Contains(t, await[crewbody.Problem](r, i+1)[i].Message, `"auto"`)
	}
	require.Empty(t, said[crewbody.Exited](r))
	r.prompt(run, session, "go")
	exit := await[crewbody.Exited](r, 1)[0]
	require.Contains(t, exit.Error, "approves by itself")

	changing.KeepMode = true
	r = newRig(t, goAgent(t, changing), quickStop)
	run, session = r.started()
	r.prompt(run, session, "go")
	require.Contains(t, await[crewbody.Exited](r, 1)[0].Error, "does not leave the mode")
}
