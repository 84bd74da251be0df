package crewtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	acp "github.com/coder/acp-go-sdk"
)

// agent is an agent of the Go SDK.
type agent struct {
	script    Script
	out       *output
	conn      *acp.AgentSideConnection
	connected chan struct{} // closed when conn is set
	life      context.Context
	signedIn  atomic.Bool

	mu       sync.Mutex
	sessions map[string]*session
	used     map[int]int // how often a rule applied
	calls    int         // requests of Call
}

// session is a session of the agent.
type session struct {
	id, cwd string
	mode    string
	cancel  context.CancelFunc // of the open turn, nil for none
	replay  bool
}

func (a *agent) Initialize(context.Context, acp.InitializeRequest) (acp.InitializeResponse, error) {
	version := acp.ProtocolVersion(acp.ProtocolVersionNumber)
	if a.script.Protocol != nil {
		version = acp.ProtocolVersion(*a.script.Protocol)
	}
	methods := []acp.AuthMethod{}
	if id := a.script.SignInBy; id != "" {
		methods = append(methods,
			acp.AuthMethod{Agent: &acp.AuthMethodAgent{Id: "browser", Name: "Browser"}}, acp.AuthMethod{Agent: &acp.AuthMethodAgent{Id: id, Name: "API key"}})
	}
	return acp.InitializeResponse{
		ProtocolVersion: version, AgentCapabilities: acp.AgentCapabilities{LoadSession: a.script.Load},
		AgentInfo: &acp.Implementation{Name: "crewtest", Version: "1"}, AuthMethods: methods,
	}, nil
}

// Authenticate signs in, if the method is the script's.
func (a *agent) Authenticate(_ context.Context, r acp.AuthenticateRequest) (acp.AuthenticateResponse, error) {
	if a.script.SignInBy == "" || r.MethodId != a.script.SignInBy {
		return acp.AuthenticateResponse{}, acp.NewInvalidParams("no such method")
	}
	a.signedIn.Store(true)
	return acp.AuthenticateResponse{}, nil
}

func (a *agent) mustSignIn() bool { return a.script.SignIn && !a.signedIn.Load() }

func (a *agent) NewSession(_ context.Context, r acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	if a.mustSignIn() {
		return acp.NewSessionResponse{}, acp.NewAuthRequired(nil)
	}
	var id [8]byte
	_, _ = rand.Read(id[:])
	s := &session{id: "session-" + hex.EncodeToString(id[:]), cwd: r.Cwd}
	if a.script.Store != "" {
		if err := os.WriteFile(a.file(s), nil, 0o600); err != nil {
			return acp.NewSessionResponse{}, err
		}
	}
	a.mu.Lock()
	a.sessions[s.id] = s
	a.mu.Unlock()
	return acp.NewSessionResponse{SessionId: acp.SessionId(s.id), Modes: a.modes(s)}, nil
}

// modes are those of a session that begins.
func (a *agent) modes(s *session) *acp.SessionModeState {
	m := a.script.Modes
	if m == nil {
		return nil
	}
	s.mode = m.Current
	state := &acp.SessionModeState{CurrentModeId: acp.SessionModeId(m.Current), AvailableModes: []acp.SessionMode{}}
	for _, o := range m.Available {
		state.AvailableModes = append(state.AvailableModes, acp.SessionMode{Id: acp.SessionModeId(o.ID), Name: o.Name, Description: &o.Description})
	}
	return state
}

func (a *agent) SetSessionMode(_ context.Context, r acp.SetSessionModeRequest) (acp.SetSessionModeResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.sessions[string(r.SessionId)]
	if s == nil || a.script.KeepMode {
		return acp.SetSessionModeResponse{}, acp.NewInvalidParams("the mode cannot be set")
	}
	s.mode = string(r.ModeId)
	return acp.SetSessionModeResponse{}, nil
}

func (a *agent) LoadSession(_ context.Context, r acp.LoadSessionRequest) (acp.LoadSessionResponse, error) {
	if a.mustSignIn() {
		return acp.LoadSessionResponse{}, acp.NewAuthRequired(nil)
	}
	<-a.connected
	s := &session{id: string(r.SessionId), cwd: r.Cwd, replay: true}
	if a.script.Store == "" {
		a.run(a.life, s, a.script.History)
	} else if err := a.replay(s); err != nil {
		return acp.LoadSessionResponse{}, err
	}
	s.replay = false
	a.mu.Lock()
	a.sessions[s.id] = s
	a.mu.Unlock()
	return acp.LoadSessionResponse{Modes: a.modes(s)}, nil
}

func (a *agent) Prompt(_ context.Context, r acp.PromptRequest) (acp.PromptResponse, error) {
	<-a.connected
	ctx, cancel := context.WithCancel(a.life)
	defer cancel()
	a.mu.Lock()
	s := a.sessions[string(r.SessionId)]
	busy := s != nil && s.cancel != nil
	if s != nil && !busy {
		s.cancel = cancel
	}
	a.mu.Unlock()
	if s == nil || busy {
		return acp.PromptResponse{}, acp.NewInvalidParams("no such session, or a turn is open")
	}
	defer func() {
		a.mu.Lock()
		s.cancel = nil
		a.mu.Unlock()
	}()
	rule, err := a.rule(s, textOf(r.Prompt))
	if err != nil {
		return acp.PromptResponse{}, err
	}
	a.run(ctx, s, rule.Steps)
	switch {
	case rule.Error != "":
		return acp.PromptResponse{}, &acp.RequestError{Code: -32603, Message: rule.Error}
	case rule.Stop != "":
		return acp.PromptResponse{StopReason: acp.StopReason(rule.Stop)}, nil
	case ctx.Err() != nil:
		return acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
	}
	return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
}

func (a *agent) Cancel(_ context.Context, r acp.CancelNotification) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.sessions[string(r.SessionId)]; s != nil && s.cancel != nil {
		s.cancel()
	}
	return nil
}

// textOf is the text of a prompt.
func textOf(blocks []acp.ContentBlock) string {
	var text []string
	for _, b := range blocks {
		if b.Text != nil {
			text = append(text, b.Text.Text)
		}
	}
	return strings.Join(text, "\n")
}

// rule is the rule for a prompt, its placeholders filled in.
func (a *agent) rule(s *session, prompt string) (Rule, error) {
	a.mu.Lock()
	mode := s.mode
	a.mu.Unlock()
	for i, r := range a.script.Rules {
		groups := regexp.MustCompile(r.Match).FindStringSubmatch(prompt)
		if groups == nil || !a.take(i, r) {
			continue
		}
		values := map[string]string{"prompt": prompt, "session": s.id, "cwd": s.cwd, "mode": mode}
		for n, g := range groups[:min(len(groups), 10)] {
			values[strconv.Itoa(n)] = g
		}
		return r.filled(values)
	}
	return Rule{}, nil
}

// take reports whether a rule may be applied, and counts it.
func (a *agent) take(i int, r Rule) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.Times > 0 && a.used[i] >= r.Times {
		return false
	}
	if r.Once != "" {
		f, err := os.OpenFile(r.Once, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil { // it exists: the rule was applied
			return false
		}
		_ = f.Close()
	}
	a.used[i]++
	return true
}

// filled replaces the placeholders in the strings of a rule. Two braces in a row occur only in strings of JSON.
func (r Rule) filled(values map[string]string) (Rule, error) {
	raw, err := json.Marshal(r)
	if err != nil {
		return r, err
	}
	pairs := make([]string, 0, 2*len(values))
	for name, v := range values {
		quoted, err := json.Marshal(v)
		if err != nil {
			return r, err
		}
		pairs = append(pairs, "{{"+name+"}}", string(quoted[1:len(quoted)-1]))
	}
	r = Rule{}
	return r, json.Unmarshal([]byte(strings.NewReplacer(pairs...).Replace(string(raw))), &r)
}

// What the agent does not support, and does not advertise.

func (a *agent) Logout(context.Context, acp.LogoutRequest) (acp.LogoutResponse, error) {
	return acp.LogoutResponse{}, acp.NewMethodNotFound(acp.AgentMethodLogout)
}

func (a *agent) CloseSession(context.Context, acp.CloseSessionRequest) (acp.CloseSessionResponse, error) {
	return acp.CloseSessionResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionClose)
}

func (a *agent) ListSessions(context.Context, acp.ListSessionsRequest) (acp.ListSessionsResponse, error) {
	return acp.ListSessionsResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionList)
}

func (a *agent) ResumeSession(context.Context, acp.ResumeSessionRequest) (acp.ResumeSessionResponse, error) {
	return acp.ResumeSessionResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionResume)
}

func (a *agent) SetSessionConfigOption(
	context.Context, acp.SetSessionConfigOptionRequest,
) (acp.SetSessionConfigOptionResponse, error) {
	return acp.SetSessionConfigOptionResponse{}, acp.NewMethodNotFound(acp.AgentMethodSessionSetConfigOption)
}
