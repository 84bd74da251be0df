//go:build agents

package host

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// modelServer is a model on the loopback interface that speaks the APIs of the agents. A prompt with askCommand has it ask for a
// command, and it ends the turn when it has the result. It does not answer a prompt with askNothing. It is also the agents' proxy, and
// refuses what they want of others.
type modelServer struct {
	url       string
	command   string
	sandboxed bool // Codex is to run the command in its sandbox

	mu      sync.Mutex
	asked   int      // for commands
	hanging int      // requests that are not answered
	paths   []string // of all requests
	strays  []string // what agents wanted of others
	results []string // bodies that have the result of the command
}

const (
	askCommand = "RUN-THE-COMMAND"
	askNothing = "NEVER-ANSWER"
	callID     = "call_0123456789abcdef"
)

func startModel(t *testing.T, command string) *modelServer {
	t.Helper()
	m := &modelServer{command: command}
	ending, end := context.WithCancel(context.Background())
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { m.serve(ending, w, q) }))
	m.url = s.URL
	t.Cleanup(func() {
		end()
		s.CloseClientConnections()
		s.Close()
	})
	return m
}

// note changes what the server remembers.
func (m *modelServer) note(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

func (m *modelServer) serve(ending context.Context, w http.ResponseWriter, q *http.Request) {
	if q.Method == http.MethodConnect || q.URL.IsAbs() {
		m.note(func() { m.strays = append(m.strays, q.Method+" "+q.Host) })
		http.Error(w, "loopback only", http.StatusForbidden)
		return
	}
	raw, _ := io.ReadAll(io.LimitReader(q.Body, 32<<20))
	body, path := string(raw), q.URL.Path
	m.note(func() { m.paths = append(m.paths, q.Method+" "+path) })
	speak := dialect(path)
	if speak == nil {
		http.Error(w, `{"error":{"message":"unknown path"}}`, http.StatusNotFound)
		return
	}
	if q.Header.Get("Upgrade") != "" {
		w.WriteHeader(http.StatusUpgradeRequired) // to plain HTTP
		return
	}
	if q.Method != http.MethodPost {
		_, _ = io.WriteString(w, `{"object":"list","data":[],"models":[]}`)
		return
	}
	var args any
	tool := toolOf(body)
	switch {
	case strings.Contains(body, callID) || strings.Contains(body, `"functionResponse"`):
		m.note(func() { m.results = append(m.results, body) })
	case tool == "": // such as for the title of the session
	case strings.Contains(body, askNothing):
		m.note(func() { m.hanging++ })
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-ending.Done():
		case <-q.Context().Done():
		}
		return
	case strings.Contains(body, askCommand):
		args = m.arguments(tool)
		m.note(func() { m.asked++ })
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range speak(tool, args) {
		_, _ = io.WriteString(w, event)
	}
}

// toolOf is the name of the tool for commands that a request offers, empty if it offers none. Codex also asks for a title with all tools.
func toolOf(body string) string {
	if strings.Contains(body, "title for a conversation") {
		return ""
	}
	for _, name := range []string{"Bash", "run_shell_command", "bash", "exec"} {
		if strings.Contains(body, `"name":"`+name+`"`) {
			return name
		}
	}
	return ""
}

// arguments are those of a tool. That of Codex takes a program, which asks a person only if it wants the command to run outside of
// the sandbox.
func (m *modelServer) arguments(tool string) any {
	if tool != "exec" {
		return object{"command": m.command, "description": "Make a file"}
	}
	args := object{"cmd": m.command}
	if !m.sandboxed {
		args["sandbox_permissions"], args["justification"] = "require_escalated", "It makes a file."
	}
	return fmt.Sprintf("text(await tools.exec_command(%s));", encoded(args))
}

// dialect returns what writes the events of an API: a call of a tool, or a text without a command.
func dialect(path string) func(tool string, args any) []string {
	switch {
	case strings.HasSuffix(path, "/messages"):
		return anthropicEvents
	case strings.HasSuffix(path, "/responses"):
		return responsesEvents
	case strings.HasSuffix(path, "/chat/completions"):
		return chatEvents
	case strings.Contains(path, "GenerateContent") || strings.Contains(path, "generateContent"):
		return geminiEvents
	case strings.HasSuffix(path, "/models"):
		return chatEvents
	}
	return nil
}

func event(name string, data any) string {
	if name != "" {
		return fmt.Sprintf("event: %s\ndata: %s\n\n", name, encoded(data))
	}
	return fmt.Sprintf("data: %s\n\n", encoded(data))
}

type object = map[string]any

func anthropicEvents(tool string, args any) []string {
	block, delta, reason := object{"type": "text", "text": ""}, object{"type": "text_delta", "text": "done"}, "end_turn"
	if args != nil {
		block = object{"type": "tool_use", "id": callID, "name": tool, "input": object{}}
		delta = object{"type": "input_json_delta", "partial_json": string(encoded(args))}
		reason = "tool_use"
	}
	return []string{
		event("message_start", object{"type": "message_start", "message": object{
			"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-4-1", "content": []any{}, "stop_reason": nil,
			"stop_sequence": nil, "usage": object{"input_tokens": 5, "output_tokens": 1},
		}}),
		event("content_block_start", object{"type": "content_block_start", "index": 0, "content_block": block}),
		event("content_block_delta", object{"type": "content_block_delta", "index": 0, "delta": delta}),
		event("content_block_stop", object{"type": "content_block_stop", "index": 0}),
		event("message_delta", object{
			"type": "message_delta", "delta": object{"stop_reason": reason, "stop_sequence": nil}, "usage": object{"output_tokens": 9},
		}),
		event("message_stop", object{"type": "message_stop"}),
	}
}

func responsesEvents(tool string, args any) []string {
	item := object{
		"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
		"content": []any{object{"type": "output_text", "text": "done", "annotations": []any{}}},
	}
	if args != nil {
		item = object{
			"id": "ctc_1", "type": "custom_tool_call", "status": "completed", "namespace": "functions", "name": tool, "call_id": callID,
			"input": args,
		}
	}
	response := object{
		"id": "resp_1", "object": "response", "status": "completed", "model": "gpt-5", "output": []any{item},
		"usage": object{
			"input_tokens": 5, "output_tokens": 1, "total_tokens": 6, "input_tokens_details": object{"cached_tokens": 0},
			"output_tokens_details": object{"reasoning_tokens": 0},
		},
	}
	return []string{
		event("response.created", object{"type": "response.created", "response": object{"id": "resp_1", "object": "response", "status": "in_progress"}}),
		event("response.output_item.added", object{"type": "response.output_item.added", "output_index": 0, "item": item}),
		event("response.output_item.done", object{"type": "response.output_item.done", "output_index": 0, "item": item}),
		event("response.completed", object{"type": "response.completed", "response": response}),
	}
}

func chatEvents(tool string, args any) []string {
	chunk := func(delta object, reason any) string {
		return event("", object{
			"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m",
			"choices": []any{object{"index": 0, "delta": delta, "finish_reason": reason}},
		})
	}
	if args == nil {
		return []string{chunk(object{"role": "assistant", "content": "done"}, nil), chunk(object{}, "stop"), "data: [DONE]\n\n"}
	}
	call := object{"index": 0, "id": callID, "type": "function", "function": object{
		"name": tool, "arguments": string(encoded(args)),
	}}
	return []string{
		chunk(object{"role": "assistant", "tool_calls": []any{call}}, nil), chunk(object{}, "tool_calls"), "data: [DONE]\n\n",
	}
}

func geminiEvents(tool string, args any) []string {
	part := object{"text": "done"}
	if args != nil {
		part = object{"functionCall": object{"id": callID, "name": tool, "args": args}}
	}
	return []string{event("", object{
		"candidates":    []any{object{"index": 0, "finishReason": "STOP", "content": object{"role": "model", "parts": []any{part}}}},
		"usageMetadata": object{"promptTokenCount": 5, "candidatesTokenCount": 1, "totalTokenCount": 6},
		"modelVersion":  "gemini-2.5-pro", "responseId": "r1",
	})}
}
