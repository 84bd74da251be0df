//go:build agents

package host

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/testing/kill"
)

// npmAgent is an agent that make agents installs from npm.
type npmAgent struct {
	argv []string // below node_modules; a script of node unless it is a binary
	node bool
	// env and files, which are below HOME, make the agent use the model server and nothing else.
	env   map[string]string
	files map[string]string
}

func npmAgents(url string) map[string]npmAgent {
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	return map[string]npmAgent{
		"claude": {
			argv: []string{"@agentclientprotocol/claude-agent-acp/dist/index.js"}, node: true,
			env: map[string]string{
				"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "fake", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
			},
		},
		"codex": {
			argv: []string{"@agentclientprotocol/codex-acp/dist/index.js"}, node: true,
			env: map[string]string{"OPENAI_API_KEY": "fake"},
			files: map[string]string{
				".codex/config.toml": fmt.Sprintf("openai_base_url = %q\ncheck_for_update_on_startup = false\n[analytics]\nenabled = false\n"+
					"[features]\nenable_request_compression = false\nplugins = false\napps = false\n", url+"/v1"),
			},
		},
		"gemini": {
			argv: []string{"@google/gemini-cli/bundle/gemini.js", "--acp"}, node: true,
			env: map[string]string{"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "fake", "GEMINI_TELEMETRY_ENABLED": "false"},
			files: map[string]string{
				".gemini/settings.json": `{"general":{"enableAutoUpdate":false,"enableAutoUpdateNotification":false},` +
					`"privacy":{"usageStatisticsEnabled":false},"security":{"auth":{"selectedType":"gemini-api-key"}}}`,
			},
		},
		"opencode": {
			argv: []string{"opencode-" + runtime.GOOS + "-" + arch + "/bin/opencode", "acp"},
			env: map[string]string{
				"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
				"npm_config_registry": url, // from which it installs the types of plugins; it does not need them
			},
			files: map[string]string{
				".config/opencode/opencode.json": fmt.Sprintf(`{"autoupdate":false,"share":"disabled","model":"loop/m","small_model":"loop/m",`+
					`"enabled_providers":["loop"],"provider":{"loop":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":%q,"apiKey":"fake"},`+
					`"models":{"m":{"name":"m","limit":{"context":200000,"output":8000}}}}}}`, url+"/v1"),
			},
		},
	}
}

// npmHost is the configuration of a host with one of the agents, under an environment that has nothing else.
type npmHost struct {
	Argv, Env []string // Env are the names of the variables, which the process of the test has
	home      string
}

func newNpmHost(t *testing.T, name string, m *modelServer) (h npmHost) {
	t.Helper()
	modules := os.Getenv("TURNTABLE_NPM_AGENTS")
	require.NotEmpty(t, modules, "TURNTABLE_NPM_AGENTS is the directory node_modules: run make agents")
	a := npmAgents(m.url)[name]
	h.Argv = append([]string{filepath.Join(modules, a.argv[0])}, a.argv[1:]...)
	if a.node {
		h.Argv = append([]string{"node"}, h.Argv...)
	}
	h.home = t.TempDir()
	for file, text := range a.files {
		path := filepath.Join(h.home, file)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	env := map[string]string{
		"PATH": os.Getenv("PATH"), "HOME": h.home, "HTTP_PROXY": m.url, "HTTPS_PROXY": m.url, "NO_PROXY": "127.0.0.1,localhost",
	}
	maps.Copy(env, a.env)
	for name, value := range env {
		t.Setenv(name, value)
		h.Env = append(h.Env, name)
	}
	return h
}

// processes are those that have the environment of the agent, whoever their parents are.
func (h npmHost) processes() (list []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		env, _ := os.ReadFile(file)
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if strings.Contains("\x00"+string(env), "\x00HOME="+h.home+"\x00") {
			list = append(list, filepath.Base(filepath.Dir(file))+" "+strings.ReplaceAll(string(line[:min(len(line), 200)]), "\x00", " "))
		}
	}
	return list
}

func (h npmHost) gone(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return len(h.processes()) == 0 }, waitLimit, 20*time.Millisecond, "%v",
		lazily(func() any { return h.processes() }))
}

// npmCase is an agent of a host that has a session, and its model.
type npmCase struct {
	*rig
	npmHost
	m            *modelServer
	name         string
	run, session string
}

func newNpmCase(t *testing.T, name, command string, prepare ...func(*npmCase)) *npmCase {
	t.Helper()
	c := &npmCase{m: startModel(t, command), name: name}
	c.npmHost = newNpmHost(t, name, c.m)
	c.rig = newRig(t, c.Argv, func(_ *rig, config *Config, l *times) {
		config.Env, config.Policy.Stderr = c.Env, true
		l.initialize, l.session = 2*time.Minute, 2*time.Minute
	})
	t.Cleanup(func() {
		c.m.note(func() {
			if len(c.m.strays) > 0 {
				t.Errorf("the agent wanted something of others: %v", c.m.strays)
			}
			if t.Failed() {
				t.Log("requests:", c.m.paths, "commands:", c.m.asked, "results:", len(c.m.results))
			}
		})
		if t.Failed() {
			for _, rec := range c.out.all() {
				t.Logf("%s %.1500s", rec.in.Kind, rec.in.Body)
			}
		}
	})
	for _, f := range prepare {
		f(c)
	}
	c.run, c.session = c.started()
	return c
}

// decide answers all requests in one way until the turn has ended.
func (c *npmCase) decide(answer func(q crewbody.Permission) crewbody.Answer) crewbody.TurnEnded {
	c.t.Helper()
	answered := 0
	require.Eventually(c.t, func() bool {
		for _, q := range said[crewbody.Permission](c.rig)[answered:] {
			answered++
			a := answer(q)
			a.AgentID, a.Run, a.RequestID = agentID, c.run, q.RequestID
			c.act(a)
		}
		return len(said[crewbody.TurnEnded](c.rig)) > 0
	}, waitLimit, 5*time.Millisecond, "%v", lazily(func() any { return c.kinds() }))
	return said[crewbody.TurnEnded](c.rig)[0]
}

// optionOf is the ID of the first option of a kind.
func optionOf(q crewbody.Permission, kind string) string {
	var options []struct {
		ID   string `json:"optionId"`
		Kind string `json:"kind"`
	}
	_ = json.Unmarshal(q.Options, &options)
	for _, o := range options {
		if o.Kind == kind {
			return o.ID
		}
	}
	return ""
}

func allow(q crewbody.Permission) crewbody.Answer {
	return crewbody.Answer{OptionID: optionOf(q, "allow_once"), Allowed: true}
}

func deny(q crewbody.Permission) crewbody.Answer {
	return crewbody.Answer{OptionID: optionOf(q, "reject_once")}
}

// expire is what the agent's row answers after its time limit.
func expire(crewbody.Permission) crewbody.Answer { return crewbody.Answer{By: "deadline"} }

// longCommand makes a file at its end, beyond what is shown of long requests in events.
var longCommand = "printf yes > made.txt; : " + strings.Repeat("a", 3000) + "; printf tail >> made.txt"

// asked waits for the request, and checks that it shows the whole command and that the agent has not run it.
func (c *npmCase) asked() crewbody.Permission {
	c.t.Helper()
	c.prompt(c.run, c.session, askCommand)
	q := await[crewbody.Permission](c.rig, 1)[0]
	shown := string(encoded(c.m.command))
	require.Contains(c.t, string(q.ToolCall)+string(q.Args), shown[1:len(shown)-1])
	require.NoFileExists(c.t, c.path("made.txt"))
	return q
}

const (
	npmProgram = "host of an installed agent"
	runsLong   = "printf yes > running.txt; sleep 600"
)

func exists(t *testing.T, file string) {
	t.Helper()
	require.Eventually(t, func() bool { _, err := os.Stat(file); return err == nil }, waitLimit, 5*time.Millisecond)
}

// npmChild is a host in a process of its own, whose agent runs what its model wants.
type npmChild struct {
	Argv, Env []string
	Dir       string
}

func init() { programs[npmProgram] = kill.Of(runNpmHost) }

func runNpmHost(ctx context.Context, c npmChild) error {
	h, err := New(Config{
		Agent: "harbor", Name: "h1", Brokers: []string{"127.0.0.1:1"}, Commands: map[string][]string{"": c.Argv}, Dirs: []string{c.Dir},
		Env: c.Env, Initialize: 2 * time.Minute,
	})
	if err != nil {
		return err
	}
	r := &rig{t: new(testing.T), h: h, out: &written{}, ctx: ctx}
	h.open(r.out)
	h.begin(ctx, testEpoch)
	run := r.act(crewbody.Start{AgentID: agentID, Cwd: c.Dir})
	prompted, answered := false, 0
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if ready := said[crewbody.SessionReady](r); len(ready) > 0 && !prompted {
			prompted = true
			r.prompt(run, ready[0].SessionID, askCommand)
		}
		for _, q := range said[crewbody.Permission](r)[answered:] {
			answered++
			a := allow(q)
			a.AgentID, a.Run, a.RequestID = agentID, run, q.RequestID
			r.act(a)
		}
	}
}
