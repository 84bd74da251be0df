package crewtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"github.com/turntable-streams/turntable/internal/clock"
)

// run does steps until the turn is cancelled.
func (a *agent) run(ctx context.Context, s *session, steps []Step) {
	for _, step := range steps {
		if ctx.Err() != nil {
			return
		}
		a.do(ctx, s, step)
	}
}

func (a *agent) do(ctx context.Context, s *session, step Step) {
	switch {
	case step.Text != "":
		a.text(s, step.Text, step.Split)
	case step.Thought != "":
		a.chunk(s, "agent_thought_chunk", step.Thought)
	case step.Update != nil:
		a.send(s, step.Update)
	case step.Tool != nil:
		a.tool(ctx, s, *step.Tool)
	case step.Plan != nil:
		a.plan(s, step.Plan)
	case step.Usage != nil:
		a.send(s, map[string]any{"sessionUpdate": "usage_update", "used": step.Usage[0], "size": step.Usage[1]})
	case step.Ask != nil:
		a.ask(ctx, s, *step.Ask)
	case step.Read != nil:
		a.read(ctx, s, *step.Read)
	case step.Write != nil:
		_, err := a.conn.WriteTextFile(ctx, acp.WriteTextFileRequest{
			SessionId: acp.SessionId(s.id), Path: s.path(step.Write.Path), Content: step.Write.Content,
		})
		a.outcome(s, "written", err)
	case step.Save != nil:
		path := s.path(step.Save.Path)
		_ = os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, []byte(step.Save.Content), 0o644); err != nil {
			a.outcome(s, "", err)
		}
	case step.Terminal != nil:
		a.terminal(ctx, s, step.Terminal)
	case step.Call != "":
		a.call(step)
	case step.Sleep > 0:
		clock.Sleep(ctx, clock.System(), time.Duration(step.Sleep)*time.Millisecond)
	case step.Hang:
		<-ctx.Done()
	case step.Stuck:
		select {}
	case step.Await != "":
		for ctx.Err() == nil {
			if _, err := os.Stat(step.Await); err == nil {
				return
			}
			clock.Sleep(ctx, clock.System(), 5*time.Millisecond)
		}
	default:
		a.process(step)
	}
}

// process does a step that concerns the process, not the protocol.
func (a *agent) process(step Step) {
	switch {
	case step.Exit != nil:
		os.Exit(*step.Exit)
	case step.Signal != 0:
		self, _ := os.FindProcess(os.Getpid())
		_ = self.Signal(syscall.Signal(step.Signal))
		select {}
	case step.Line != "":
		_, _ = a.out.Write([]byte(step.Line + "\n"))
	case step.Raw != "":
		_, _ = a.out.Write([]byte(step.Raw))
	case step.Flood > 0:
		_, _ = a.out.Write([]byte(strings.Repeat("x", step.Flood) + "\n"))
	case step.Stderr != "":
		fmt.Fprintln(os.Stderr, step.Stderr)
	case step.Pid != "":
		writeID(step.Pid, os.Getpid())
	case step.Fork != "":
		c := exec.Command(os.Args[0], forkedProcess)
		if err := c.Start(); err == nil {
			writeID(step.Fork, c.Process.Pid)
		}
	}
}

// writeID writes a file that is complete when it exists.
func writeID(file string, pid int) {
	_ = os.WriteFile(file+".tmp", []byte(strconv.Itoa(pid)), 0o600)
	_ = os.Rename(file+".tmp", file)
}

// path is an absolute path: relative ones begin in the session's directory.
func (s *session) path(p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(s.cwd, p)
}

// send sends a session/update as it is: the SDK's types have no place for unknown kinds.
func (a *agent) send(s *session, update any) {
	raw, err := json.Marshal(update)
	if err != nil {
		return
	}
	a.keep(s, raw)
	a.message(map[string]any{
		"jsonrpc": "2.0", "method": acp.ClientMethodSessionUpdate,
		"params": map[string]any{"sessionId": s.id, "update": json.RawMessage(raw)},
	})
}

func (a *agent) message(m map[string]any) {
	raw, err := json.Marshal(m)
	if err != nil {
		return
	}
	_, _ = a.out.Write(append(raw, '\n'))
}

func (a *agent) text(s *session, text string, split int) {
	runes := []rune(text)
	if split <= 0 {
		split = len(runes)
	}
	for at := 0; at < len(runes); at += split {
		a.chunk(s, "agent_message_chunk", string(runes[at:min(len(runes), at+split)]))
	}
}

func (a *agent) chunk(s *session, kind, text string) {
	a.send(s, map[string]any{"sessionUpdate": kind, "content": map[string]any{"type": "text", "text": text}})
}

func (a *agent) plan(s *session, tasks []string) {
	entries := make([]map[string]any, 0, len(tasks))
	status := "in_progress"
	for _, t := range tasks {
		entries = append(entries, map[string]any{"content": t, "priority": "medium", "status": status})
		status = "pending"
	}
	a.send(s, map[string]any{"sessionUpdate": "plan", "entries": entries})
}

// outcome sends as text that something was done, or why not.
func (a *agent) outcome(s *session, done string, err error) {
	if err != nil {
		done = "failed: " + err.Error()
	}
	a.chunk(s, "agent_message_chunk", done)
}

func (a *agent) file(s *session) string {
	return filepath.Join(a.script.Store, filepath.Base(s.id)+".jsonl")
}

// keep adds an update to the file of a session.
func (a *agent) keep(s *session, update json.RawMessage) {
	if a.script.Store == "" || s.replay || s.id == "" {
		return
	}
	f, err := os.OpenFile(a.file(s), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_, _ = f.Write(append(bytes.Clone(update), '\n'))
	_ = f.Close()
}

// replay sends the updates in the file of a session.
func (a *agent) replay(s *session) error {
	raw, err := os.ReadFile(a.file(s))
	if err != nil {
		return &acp.RequestError{Code: -32002, Message: "no such session"}
	}
	for line := range bytes.Lines(raw) {
		a.send(s, json.RawMessage(bytes.TrimSpace(line)))
	}
	return nil
}

// output is standard output. A call of Write is one message and is not mixed with another.
type output struct {
	mu    sync.Mutex
	to    io.Writer
	piece int // bytes that are written at once; 0 for all
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.piece == 0 {
		return o.to.Write(p)
	}
	written := 0
	for written < len(p) {
		n, err := o.to.Write(p[written:min(len(p), written+o.piece)])
		written += n
		if err != nil {
			return written, err
		}
	}
	return written, nil
}
