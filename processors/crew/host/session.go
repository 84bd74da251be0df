package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/git"
	"github.com/turntable-streams/turntable/topics"
)

// protocolVersion is the version of ACP that the host speaks.
const protocolVersion = 1

const maxSessionID = 512

// session is the ACP session of a run.
type session struct {
	mu        sync.Mutex
	id        string
	ready     bool
	replaying bool // session/load is not answered yet
}

func (s *session) set(id string, ready, replaying bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id, s.ready, s.replaying = id, ready, replaying
}

func (s *session) isReplaying() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replaying
}

// open initializes the agent and opens its session. It stops the agent if that fails.
func (r *run) open() {
	stage, err := r.handshake()
	if err == nil {
		return
	}
	select {
	case <-r.stopping: // the record of its end says why
	default:
		r.failed(stage, true, err)
		if !errors.Is(err, errClosed) {
			r.stop(stopReason{problem: err.Error()})
		}
	}
}

type initialized struct {
	ProtocolVersion topics.Raw   `json:"protocolVersion"`
	Capabilities    topics.Raw   `json:"agentCapabilities"`
	Info            topics.Raw   `json:"agentInfo"`
	AuthMethods     []authMethod `json:"authMethods"`
}

func (r *run) handshake() (stage string, err error) {
	var hello initialized
	policy := r.host.config.Policy
	err = r.call(r.host.times.initialize, "initialize", map[string]any{
		"protocolVersion": protocolVersion,
		"clientCapabilities": map[string]any{
			"fs":       map[string]any{"readTextFile": policy.Read != Deny, "writeTextFile": policy.Write != Deny},
			"terminal": policy.Terminal != Deny,
		},
		"clientInfo": map[string]any{"name": "turntable", "version": "1"},
	}, &hello)
	if err != nil {
		return crewbody.StageInitialize, err
	}
	var version int64
	if json.Unmarshal(hello.ProtocolVersion, &version) != nil || version != protocolVersion {
		return crewbody.StageInitialize, fmt.Errorf("the agent speaks another version of ACP than %d", protocolVersion)
	}
	root, below := git.Place(r.life, r.files.dir)
	r.say(crewbody.Started{
		Run: r.id, Capabilities: bounded(hello.Capabilities), Info: bounded(hello.Info), Root: root, Below: below,
	})
	stage, open := crewbody.StageSession, r.begin
	if r.start.SessionID != "" {
		stage, open = crewbody.StageResume, r.load
	}
	s, err := open(hello)
	if err != nil {
		return stage, err
	}
	r.choose(s)
	if err := r.guard(hello, &s); err != nil {
		return stage, err
	}
	r.say(crewbody.SessionReady{
		Run: r.id, SessionID: s.SessionID, Resumed: r.start.SessionID != "", Modes: bounded(s.Modes), Options: bounded(s.Options),
	})
	return stage, nil
}

// opened is the answer to session/new, or to session/load with the ID of the session.
type opened struct {
	SessionID string     `json:"sessionId"`
	Modes     topics.Raw `json:"modes"`
	Options   topics.Raw `json:"configOptions"`
	Models    topics.Raw `json:"models"`
}

func (r *run) begin(hello initialized) (s opened, err error) {
	err = r.signedIn(hello, func() error {
		return r.call(r.host.times.session, "session/new", map[string]any{"cwd": r.files.dir, "mcpServers": []any{}}, &s)
	})
	if err == nil && (s.SessionID == "" || len(s.SessionID) > maxSessionID) {
		err = errors.New("the agent gave its session no ID, or a very long one")
	}
	if err == nil {
		r.session.set(s.SessionID, true, false)
	}
	return s, err
}

func (r *run) load(hello initialized) (s opened, err error) {
	var can struct {
		LoadSession bool `json:"loadSession"`
	}
	if json.Unmarshal(hello.Capabilities, &can) != nil || !can.LoadSession {
		return s, errors.New("the agent cannot continue sessions")
	}
	id := r.start.SessionID
	err = r.signedIn(hello, func() error {
		r.session.set(id, false, true)
		done := make(chan error, 1)
		// The function runs before the next message is read, so what comes after the answer is no replay.
		r.request("session/load", map[string]any{"sessionId": id, "cwd": r.files.dir, "mcpServers": []any{}},
			func(result topics.Raw, err error) {
				r.session.set(id, err == nil, false)
				if err == nil && len(result) > 0 {
					err = json.Unmarshal(result, &s)
				}
				done <- err
			})
		return r.wait(r.host.times.load, "session/load", done)
	})
	s.SessionID = id
	return s, err
}

// request sends a request.
func (r *run) request(method string, params any, done func(topics.Raw, error)) {
	raw := encoded(params)
	id := r.calls.add(done)
	r.send(message{ID: encoded(id), Method: method, Params: raw})
}

// send sends a message. An agent that does not read its messages is stopped.
func (r *run) send(m message) {
	if !r.in.send(m) {
		r.stop(stopReason{problem: "the agent does not read its messages"})
	}
}

// call sends a request and waits for its result.
func (r *run) call(limit time.Duration, method string, params, result any) error {
	done := make(chan error, 1)
	r.request(method, params, func(raw topics.Raw, err error) {
		if err == nil && len(raw) > 0 {
			if json.Unmarshal(raw, result) != nil {
				err = errors.New("the answer is not of ACP")
			}
		}
		done <- err
	})
	return r.wait(limit, method, done)
}

func (r *run) wait(limit time.Duration, method string, done <-chan error) error {
	ctx, cancel := context.WithTimeout(r.life, limit)
	defer cancel()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		return nil
	case <-r.exited:
		select { // it may have answered before
		case err := <-done:
			if err == nil {
				return nil
			}
		default:
		}
		return fmt.Errorf("%s: %w", method, errClosed)
	case <-r.stopping:
		return fmt.Errorf("%s: the agent was stopped", method)
	case <-ctx.Done():
		return fmt.Errorf("%s: no answer within %s", method, limit)
	}
}

// authMethod is a way to sign in that an agent offers.
type authMethod struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Type string `json:"type"`
}

// byKey reports whether the agent takes an API key from its environment variables: by the type that ACP has for that, or by the IDs of
// codex-acp and gemini-cli. The other methods need a person at the agent's machine.
func (m authMethod) byKey() bool { return m.Type == "env_var" || strings.Contains(m.ID, "api-key") }

// maxMethods bounds how many ways to sign in are tried and named.
const maxMethods = 5

// signedIn opens a session. If the agent wants its client to sign in first, it does so by API key and opens the session again.
func (r *run) signedIn(hello initialized, open func() error) error {
	err := open()
	var e *rpcError
	if !errors.As(err, &e) || e.Code != codeSignIn {
		return err
	}
	names, refused := "", ""
	for _, m := range hello.AuthMethods[:min(len(hello.AuthMethods), maxMethods)] {
		names += fmt.Sprintf(" %q", m.Name)
		if !m.byKey() {
			continue
		}
		no := r.call(r.host.times.session, "authenticate", map[string]any{"methodId": m.ID}, &struct{}{})
		if no == nil {
			if err = open(); !errors.As(err, &e) || e.Code != codeSignIn {
				return err
			}
			continue
		}
		refused += fmt.Sprintf("; %s: %s", m.ID, no)
	}
	return fmt.Errorf("sign in with the agent's own program first, as the user of the host, or pass the variable of its API key (Config.Env); "+
		"its ways to sign in are:%s: %w%s", cmp.Or(names, " none"), err, refused)
}
