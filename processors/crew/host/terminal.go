package host

import (
	"cmp"
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/turntable-streams/turntable/internal/truncate"
)

const (
	// maxTerminals is how many terminals of an agent are not released.
	maxTerminals = 16
	// maxOutput is how much output of a terminal is kept, in bytes: the end. maxStderr is that of an agent's standard error.
	maxOutput = 1 << 20
	maxStderr = 4 << 10
)

// shells are the terminals of a run.
type shells struct {
	mu     sync.Mutex
	closed bool
	last   int
	open   map[string]*terminal
	wg     sync.WaitGroup
}

// terminal is a command that the host runs for an agent.
type terminal struct {
	id     string
	cmd    *exec.Cmd
	group  *group
	ended  chan struct{} // closed when it has ended
	output output
}

// output keeps the end of an output.
type output struct {
	mu        sync.Mutex
	raw       []byte
	limit     int
	truncated bool
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.raw = append(o.raw, p...)
	if surplus := len(o.raw) - o.limit; surplus > 0 {
		for surplus < len(o.raw) && !utf8.RuneStart(o.raw[surplus]) {
			surplus++
		}
		o.raw, o.truncated = append(o.raw[:0], o.raw[surplus:]...), true
	}
	return len(p), nil
}

func (o *output) text() (string, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return truncate.Text(string(o.raw), maxOutput), o.truncated
}

type createRequest struct {
	Command string     `json:"command"`
	Args    []string   `json:"args"`
	Cwd     string     `json:"cwd"`
	Limit   *int       `json:"outputByteLimit"`
	Env     []variable `json:"env"`
}

type variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// secretName matches the names of variables with secrets, and secretValue what can be one: no path, no command and no function.
var (
	secretName  = regexp.MustCompile(`(?i)(key|token|secret|password|passwd|credentials?)$`)
	secretValue = regexp.MustCompile(`^[^\s/(){};|<>$"'\x60][^\s(){};|<>$"'\x60]*$`)
)

// shown returns the arguments that a person sees. A variable's value can be what runs, as that of LD_PRELOAD, so values are shown,
// except secrets, which are neither programs nor options: events and gates are stored and shown to others. The digest covers them.
// dir is the agent's directory, in which a request without a directory runs.
func (q createRequest) shown(dir string) any {
	args, env := append([]string{}, q.Args...), append([]variable{}, q.Env...)
	for i, v := range env {
		if secretName.MatchString(v.Name) && secretValue.MatchString(v.Value) {
			env[i].Value = "[REDACTED]"
		}
	}
	return map[string]any{
		"command": q.Command, "args": args, "cwd": cmp.Or(q.Cwd, dir), "env": env, "env_sha256": digestOf(encoded(q.Env)),
	}
}

func (r *run) createTerminal(_ context.Context, q createRequest) (any, error) {
	if q.Command == "" {
		return nil, &rpcError{codeInvalidParams, "no command"}
	}
	c := exec.Command(q.Command, q.Args...)
	c.Dir = r.files.dir
	if q.Cwd != "" {
		// The directory is resolved here: os.Root cannot start processes.
		real, err := filepath.EvalSymlinks(q.Cwd)
		if err != nil {
			return nil, fileError(err)
		}
		name, err := r.files.name(real)
		if err != nil {
			return nil, err
		}
		c.Dir = filepath.Join(r.files.dir, name)
	}
	c.Env = append(r.host.config.environ(), "PWD="+c.Dir)
	for _, v := range q.Env {
		c.Env = append(c.Env, v.Name+"="+v.Value)
	}
	t := &terminal{cmd: c, ended: make(chan struct{}), output: output{limit: maxOutput}}
	if q.Limit != nil && *q.Limit >= 0 {
		t.output.limit = min(*q.Limit, maxOutput)
	}
	c.Stdout, c.Stderr = &t.output, &t.output
	c.WaitDelay = r.host.times.drain
	return r.shells.start(r, t)
}

func (s *shells) start(r *run, t *terminal) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	if len(s.open) >= maxTerminals {
		return nil, &rpcError{codeInternal, "too many terminals are not released"}
	}
	var err error
	if t.group, err = r.host.spawner.start(t.cmd); err != nil {
		return nil, fileError(err)
	}
	s.last++
	t.id = "terminal-" + strconv.Itoa(s.last)
	s.open[t.id] = t
	s.wg.Go(func() {
		_ = t.cmd.Wait()
		t.group.close()
		close(t.ended)
	})
	return map[string]string{"terminalId": t.id}, nil
}

// close ends all terminals.
func (s *shells) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, t := range s.open {
		t.group.kill()
	}
}

// wait waits until they have ended.
func (s *shells) wait() { s.wg.Wait() }

type terminalRequest struct {
	ID string `json:"terminalId"`
}

func (s *shells) find(q terminalRequest) (*terminal, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.open[q.ID]; t != nil {
		return t, nil
	}
	return nil, &rpcError{codeNoSuchResource, "no such terminal"}
}

// status is how a terminal has ended, nil before.
func (t *terminal) status() map[string]any {
	select {
	case <-t.ended:
	default:
		return nil
	}
	if s := signalOf(t.cmd); s != "" {
		return map[string]any{"exitCode": nil, "signal": s}
	}
	return map[string]any{"exitCode": t.cmd.ProcessState.ExitCode(), "signal": nil}
}

// ofTerminal is what a request for one of the terminals does.
func ofTerminal(r *run, do func(context.Context, *terminal) (any, error)) func(context.Context, terminalRequest) (any, error) {
	return func(ctx context.Context, q terminalRequest) (any, error) {
		t, err := r.shells.find(q)
		if err != nil {
			return nil, err
		}
		return do(ctx, t)
	}
}

func terminalOutput(_ context.Context, t *terminal) (any, error) {
	status := t.status() // before the output, so that it is complete
	text, truncated := t.output.text()
	answer := map[string]any{"output": text, "truncated": truncated}
	if status != nil {
		answer["exitStatus"] = status
	}
	return answer, nil
}

func awaitTerminal(ctx context.Context, t *terminal) (any, error) {
	select {
	case <-t.ended:
		return t.status(), nil
	case <-ctx.Done():
		return nil, errClosed
	}
}

func (r *run) killTerminal(_ context.Context, t *terminal) (any, error) {
	t.group.terminate()
	timer := time.AfterFunc(r.host.times.drain, t.group.kill)
	go func() {
		<-t.ended
		timer.Stop()
	}()
	return map[string]any{}, nil
}

func (r *run) releaseTerminal(_ context.Context, t *terminal) (any, error) {
	t.group.kill()
	r.shells.mu.Lock()
	delete(r.shells.open, t.id)
	r.shells.mu.Unlock()
	return map[string]any{}, nil
}
