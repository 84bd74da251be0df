package crewtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	acp "github.com/coder/acp-go-sdk"
)

// What the agent asks its client for.

func (a *agent) tool(ctx context.Context, s *session, t Tool) {
	call := map[string]any{
		"sessionUpdate": "tool_call", "toolCallId": t.ID, "title": t.Title, "status": "in_progress",
	}
	if t.Kind != "" {
		call["kind"] = t.Kind
	}
	if t.RawInput != nil {
		call["rawInput"] = t.RawInput
	}
	a.send(s, call)
	a.run(ctx, s, t.Steps)
	status := "completed"
	if ctx.Err() != nil {
		status = "failed"
	}
	a.send(s, map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": t.ID, "status": status})
}

var (
	defaultCall    = json.RawMessage(`{"toolCallId":"call-1","title":"Run tests","kind":"execute","status":"pending","rawInput":{"command":"make test"}}`)
	defaultOptions = json.RawMessage(`[{"optionId":"allow_once","name":"Allow","kind":"allow_once"},` +
		`{"optionId":"reject_once","name":"Reject","kind":"reject_once"}]`)
)

func (a *agent) ask(ctx context.Context, s *session, q Ask) {
	var r acp.RequestPermissionRequest
	call, options := q.ToolCall, q.Options
	if call == nil {
		call = defaultCall
	}
	if options == nil {
		options = defaultOptions
	}
	if err := errors.Join(json.Unmarshal(call, &r.ToolCall), json.Unmarshal(options, &r.Options)); err != nil {
		a.outcome(s, "", err)
		return
	}
	r.SessionId = acp.SessionId(s.id)
	// The client answers also after a cancellation of the turn.
	answer, err := a.conn.RequestPermission(a.life, r)
	switch {
	case err != nil:
		a.outcome(s, "", err)
	case answer.Outcome.Selected == nil:
		a.run(context.WithoutCancel(ctx), s, q.Cancelled)
	default:
		for _, o := range r.Options {
			if o.OptionId != answer.Outcome.Selected.OptionId {
				continue
			}
			if strings.HasPrefix(string(o.Kind), "allow") {
				a.run(ctx, s, q.Allowed)
			} else {
				a.run(ctx, s, q.Rejected)
			}
		}
	}
}

func (a *agent) read(ctx context.Context, s *session, f File) {
	r := acp.ReadTextFileRequest{SessionId: acp.SessionId(s.id), Path: s.path(f.Path)}
	if f.Line > 0 {
		r.Line = &f.Line
	}
	if f.Limit > 0 {
		r.Limit = &f.Limit
	}
	answer, err := a.conn.ReadTextFile(ctx, r)
	a.outcome(s, "read: "+answer.Content, err)
}

func (a *agent) terminal(ctx context.Context, s *session, command []string) {
	id := acp.SessionId(s.id)
	t, err := a.conn.CreateTerminal(ctx, acp.CreateTerminalRequest{SessionId: id, Command: command[0], Args: command[1:]})
	if err != nil {
		a.outcome(s, "", err)
		return
	}
	end, err := a.conn.WaitForTerminalExit(ctx, acp.WaitForTerminalExitRequest{SessionId: id, TerminalId: t.TerminalId})
	if err != nil {
		a.outcome(s, "", err)
		return
	}
	out, err := a.conn.TerminalOutput(ctx, acp.TerminalOutputRequest{SessionId: id, TerminalId: t.TerminalId})
	code := -1
	if end.ExitCode != nil {
		code = *end.ExitCode
	}
	a.outcome(s, fmt.Sprintf("exit %d: %s", code, out.Output), err)
	_, _ = a.conn.ReleaseTerminal(ctx, acp.ReleaseTerminalRequest{SessionId: id, TerminalId: t.TerminalId})
}

// call sends a request of any method. Its answer is not read: the SDK drops answers to requests that are not its own.
func (a *agent) call(step Step) {
	a.mu.Lock()
	a.calls++
	id := fmt.Sprintf("call-%d", a.calls)
	a.mu.Unlock()
	m := map[string]any{"jsonrpc": "2.0", "id": id, "method": step.Call}
	if step.CallParams != nil {
		m["params"] = step.CallParams
	}
	a.message(m)
}
