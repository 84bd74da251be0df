package host

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/topics"
)

// maxResets is how often an agent may leave the mode that the host has set before it is stopped.
const maxResets = 3

// mode is one of the modes that an agent offers.
type mode struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

// modes are those of a session. Agents offer them as ACP's modes, or as an option of the category mode.
type modes struct {
	option  string // ID of the option; empty for ACP's modes
	current string
	list    []mode
}

// offered returns the modes of a session; none for an agent without modes.
func offered(s opened) (m modes) {
	var acp struct {
		Current   string `json:"currentModeId"`
		Available []mode `json:"availableModes"`
	}
	if json.Unmarshal(s.Modes, &acp) == nil && (acp.Current != "" || len(acp.Available) > 0) {
		return modes{current: acp.Current, list: acp.Available}.complete()
	}
	return modesIn(s.Options)
}

// modesIn returns the modes among the options of a session.
func modesIn(options topics.Raw) (m modes) {
	var list []topics.Raw
	_ = json.Unmarshal(options, &list)
	for _, raw := range list {
		var o struct {
			ID       string `json:"id"`
			Category string `json:"category"`
			Current  string `json:"currentValue"`
			Options  []struct {
				mode
				Value string `json:"value"`
			} `json:"options"`
		}
		if json.Unmarshal(raw, &o) != nil || o.Category != "mode" && o.ID != "mode" {
			continue
		}
		m = modes{option: o.ID, current: o.Current}
		for _, one := range o.Options {
			m.list = append(m.list, mode{one.Value, one.Name, one.Description})
		}
		return m.complete()
	}
	return m
}

// complete adds the current mode, which is one even if it is not listed.
func (m modes) complete() modes {
	if m.current != "" && m.find(m.current).ID == "" {
		m.list = append(m.list, mode{ID: m.current})
	}
	return m
}

func (m modes) find(id string) mode {
	if i := slices.IndexFunc(m.list, func(o mode) bool { return o.ID == id }); i >= 0 {
		return m.list[i]
	}
	return mode{}
}

// knownModes are the modes in which known agents ask, by the name in their agentInfo. OpenCode asks in it because the host says so, see
// environ; a repository can add other modes to it.
var knownModes = map[string]string{
	"@agentclientprotocol/claude-agent-acp": "default",
	"@agentclientprotocol/codex-acp":        "read-only",
	"gemini-cli":                            "default",
	"OpenCode":                              "build",
}

// asking are the IDs of modes that ask, in their small letters: of claude-agent-acp and gemini-cli, of codex-acp, and of others.
var asking = []string{"default", "readonly", "ask", "alwaysask", "manual", "normal", "suggest"}

// approvingIDs are the IDs of modes that approve by themselves, as known agents have them.
var approvingIDs = []string{
	"auto", "acceptedits", "autoedit", "autoaccept", "autoapprove", "bypasspermissions", "bypass", "dontask", "yolo", "fullauto",
	"fullaccess", "agentfullaccess", "dangerfullaccess", "workspacewrite", "autopilot", "allowall", "neverask",
}

// approvingWords are what names and descriptions of such modes say.
var approvingWords = []string{
	"without asking", "without approval", "without permission", "without confirm", "without prompt", "auto-", "auto ", "automatic",
	"autonom", "bypass", "skip", "yolo", "full access", "unrestricted", "never ask", "don't ask", "do not ask", "no approval",
	"no confirm", "approves everything", "approve everything", "all permissions", "classifier", "only ask for",
}

// approves reports whether an agent in the mode carries out something that a person was not asked about, judged by what is known and
// by what the agent says about it.
func (o mode) approves() bool {
	text := strings.ToLower(o.Name + " " + o.Description + " ")
	return slices.Contains(approvingIDs, letters(o.ID)) ||
		slices.ContainsFunc(approvingWords, func(word string) bool { return strings.Contains(text, word) })
}

func letters(id string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, id)
}

// choose returns the mode in which an agent asks: the named one, one whose ID is known, the current one, or any other that does not
// approve by itself. A mode for plans is the last choice, because in it the agent does nothing.
func (m modes) choose(named string) (string, error) {
	if named != "" {
		if m.find(named).ID == "" {
			return "", fmt.Errorf("the agent does not offer the mode %q, which is that of its provider (Config.Modes) or the one in which it asks", named)
		}
		return named, nil
	}
	asks := slices.DeleteFunc(slices.Clone(m.list), func(o mode) bool { return o.approves() || o.ID == "" })
	if len(asks) == 0 {
		return "", errors.New("the agent offers only modes in which it approves by itself; set the mode of its provider (Config.Modes) to permit one")
	}
	rank := func(o mode) int {
		switch at := slices.Index(asking, letters(o.ID)); {
		case at >= 0:
			return at
		case o.ID == m.current:
			return len(asking)
		case strings.Contains(letters(o.ID), "plan"):
			return len(asking) + 2
		}
		return len(asking) + 1
	}
	return slices.MinFunc(asks, func(a, b mode) int { return rank(a) - rank(b) }).ID, nil
}

// guarded is the mode in which the host keeps an agent.
type guarded struct {
	mu     sync.Mutex
	modes  modes
	wanted string // empty for an agent without modes
	early  string // what the agent has changed to before the mode was set
	set    bool
	resets int
}

// guard sets the mode in which the agent asks, and the current mode of what it has opened.
func (r *run) guard(hello initialized, s *opened) error {
	m := offered(*s)
	named := r.host.config.mode(r.start)
	if named == "" {
		var info struct {
			Name string `json:"name"`
		}
		_ = json.Unmarshal(hello.Info, &info)
		named = knownModes[info.Name]
	}
	r.mode.mu.Lock()
	if r.mode.set = true; r.mode.early != "" {
		m.current = r.mode.early
		m = m.complete()
	}
	var err error
	if len(m.list) > 0 || named != "" {
		r.mode.wanted, err = m.choose(named)
	}
	r.mode.modes = m
	wanted := r.mode.wanted
	r.mode.mu.Unlock()
	switch {
	case err != nil:
		return err
	case wanted == "":
		return nil
	case wanted != m.current:
		method, params := m.setting(s.SessionID, wanted)
		if err := r.call(r.host.times.session, method, params, &struct{}{}); err != nil {
			return fmt.Errorf("the mode %q was not set: %w", wanted, err)
		}
	}
	s.Modes = encoded(map[string]any{"currentModeId": wanted, "availableModes": m.list})
	return nil
}

// setting returns the request that sets a mode.
func (m modes) setting(session, id string) (method string, params map[string]any) {
	if m.option != "" {
		return "session/set_config_option", map[string]any{"sessionId": session, "configId": m.option, "value": id}
	}
	return "session/set_mode", map[string]any{"sessionId": session, "modeId": id}
}

// changedMode sets the mode again if an update says that the agent has changed to one that approves by itself. An agent that refuses,
// or that does it again and again, is stopped.
func (r *run) changedMode(session string, raw topics.Raw) {
	var u struct {
		Kind    string     `json:"sessionUpdate"`
		Current string     `json:"currentModeId"`
		Options topics.Raw `json:"configOptions"`
	}
	if json.Unmarshal(raw, &u) != nil || u.Kind != "current_mode_update" && u.Kind != "config_option_update" {
		return
	}
	if u.Kind == "config_option_update" {
		u.Current = modesIn(u.Options).current
	}
	r.mode.mu.Lock()
	if !r.mode.set {
		r.mode.early = u.Current
		r.mode.mu.Unlock()
		return
	}
	m, wanted := r.mode.modes, r.mode.wanted
	now := m.find(u.Current)
	now.ID = cmp.Or(now.ID, u.Current)
	if u.Current == "" || u.Current == wanted || !now.approves() {
		r.mode.mu.Unlock()
		return
	}
	r.mode.resets++
	again := r.mode.resets
	r.mode.mu.Unlock()
	if wanted == "" || again > maxResets {
		r.stop(stopReason{problem: fmt.Sprintf("the agent has changed to the mode %q, in which it approves by itself", u.Current)})
		return
	}
	r.problem("the agent has changed to the mode %q, in which it approves by itself: the host sets the mode %q", u.Current, wanted)
	method, params := m.setting(session, wanted)
	done := make(chan error, 1)
	r.request(method, params, func(_ topics.Raw, err error) { done <- err })
	r.host.working.Go(func() {
		if err := r.wait(r.host.times.session, method, done); err != nil {
			r.stop(stopReason{problem: fmt.Sprintf("the agent does not leave the mode %q, in which it approves by itself: %v", u.Current, err)})
			return
		}
		raw = encoded(map[string]string{"sessionUpdate": "current_mode_update", "currentModeId": wanted})
		reset := &update{run: r.id, session: session, raw: raw}
		_ = r.host.out.put(r.host.life, mailbox.Agent(r.start.AgentID), item{update: reset, size: len(raw)})
	})
}

// openCodeAsks are the permissions with which OpenCode asks before it does more than read. Without them it asks for nothing, and none of
// its modes changes that. The last rule that matches counts.
const openCodeAsks = `{"*":"ask","read":{"*":"allow","*.env":"ask","*.env.*":"ask","*.env.example":"allow"},"glob":"allow",` +
	`"grep":"allow","list":"allow","todowrite":"allow","question":"allow","bash":"ask","edit":"ask","task":"ask","skill":"ask","lsp":"ask",` +
	`"webfetch":"ask","websearch":"ask","external_directory":"ask","doom_loop":"ask"}`

// openCodeEnv are the variables with which OpenCode asks, whatever the configurations of its user and of the repository say: those of
// its mode build count more than the others. Other agents ignore them. A configuration in the variable that the host passes on stays.
func openCodeEnv(passed []string) []string {
	env := []string{"OPENCODE_PERMISSION=" + openCodeAsks}
	const content = "OPENCODE_CONFIG_CONTENT="
	if slices.ContainsFunc(passed, func(v string) bool { return strings.HasPrefix(v, content) }) {
		return env
	}
	build := `{"build":{"permission":` + openCodeAsks + `}}`
	return append(env, content+`{"agent":`+build+`,"mode":`+build+`}`)
}
