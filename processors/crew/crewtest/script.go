package crewtest

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// Script is what an agent does. It is written as JSON.
type Script struct {
	// Protocol is the protocol version that initialize answers; nil means 1.
	Protocol *int `json:"protocol,omitempty"`
	// Load advertises session/load. Its replay is what Store has of the session, or History without Store.
	Load    bool   `json:"load,omitempty"`
	History []Step `json:"history,omitempty"`
	// Store is a directory that keeps sessions for session/load of later processes. A session that it has not is an error.
	Store string `json:"store,omitempty"`
	// SignIn makes session/new and session/load fail because the user must sign in. SignInBy is the ID of a method by which authenticate
	// does that, in the agent of the Go SDK.
	SignIn   bool   `json:"sign_in,omitempty"`
	SignInBy string `json:"sign_in_by,omitempty"`
	// Modes is the member modes of new and loaded sessions; nil for none. KeepMode makes session/set_mode fail.
	Modes    *Modes `json:"modes,omitempty"`
	KeepMode bool   `json:"keep_mode,omitempty"`
	// Start is done before anything is read. Only steps that need no session work here: Line, Raw, Sleep, Hang, Exit, Signal, Pid,
	// Fork, Flood and Stderr.
	Start []Step `json:"start,omitempty"`
	// KeepAlive keeps the process after its standard input is closed, and Stubborn after SIGTERM.
	KeepAlive bool `json:"keep_alive,omitempty"`
	Stubborn  bool `json:"stubborn,omitempty"`
	// Piece is the number of bytes that are written to standard output at once; 0 writes whole messages.
	Piece int `json:"piece,omitempty"`
	// Rules are tried in order. Without one for a prompt, the turn ends with nothing done.
	Rules []Rule `json:"rules,omitempty"`
}

// Modes are the modes of an agent.
type Modes struct {
	Current   string `json:"currentModeId"`
	Available []Mode `json:"availableModes"`
}

// Mode is one of them.
type Mode struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// Rule is what an agent does for a prompt.
type Rule struct {
	// Match is a regular expression for the text of the prompt; "" matches all. In the strings of the steps, {{0}} to {{9}} are
	// replaced by its groups, and {{prompt}}, {{session}}, {{cwd}} and {{mode}} by what they name.
	Match string `json:"match,omitempty"`
	// Times is the number of prompts of a process that the rule is for; 0 is all.
	Times int `json:"times,omitempty"`
	// Once is a file: the rule applies only if it does not exist, and then creates it. So it applies once to all processes.
	Once  string `json:"once,omitempty"`
	Steps []Step `json:"steps,omitempty"`
	// Stop is the stop reason; "" means end_turn, or cancelled after a cancellation.
	Stop string `json:"stop,omitempty"`
	// Error makes the prompt fail with this message.
	Error string `json:"error,omitempty"`
}

// Step is one thing that an agent does: the one field that is set.
type Step struct {
	// Text is sent as agent_message_chunk, in chunks of Split characters; 0 is one chunk.
	Text  string `json:"text,omitempty"`
	Split int    `json:"split,omitempty"`
	// Thought is sent as agent_thought_chunk.
	Thought string `json:"thought,omitempty"`
	// Update is sent as the member update of session/update, as it is.
	Update json.RawMessage `json:"update,omitempty"`
	// Tool is sent as a tool_call of that title, and as completed after the steps of Tool.
	Tool *Tool `json:"tool,omitempty"`
	// Plan is sent as a plan, the first entry in progress.
	Plan []string `json:"plan,omitempty"`
	// Usage is sent as usage_update: the tokens used and the size of the window.
	Usage *[2]int64 `json:"usage,omitempty"`
	// Ask asks for permission.
	Ask *Ask `json:"ask,omitempty"`
	// Read and Write use the client's files, Save writes to the disk itself. Read sends what it has read as text; a refusal is
	// sent as text, too.
	Read  *File `json:"read,omitempty"`
	Write *File `json:"write,omitempty"`
	Save  *File `json:"save,omitempty"`
	// Terminal runs a command in a terminal of the client and sends its exit code and output as text.
	Terminal []string `json:"terminal,omitempty"`
	// Call sends a request of any method to the client, with the parameters CallParams, and does not wait for the answer.
	Call       string          `json:"call,omitempty"`
	CallParams json.RawMessage `json:"call_params,omitempty"`
	// Sleep waits for milliseconds, or until the turn is cancelled.
	Sleep int `json:"sleep,omitempty"`
	// Hang waits until the turn is cancelled, Stuck forever.
	Hang  bool `json:"hang,omitempty"`
	Stuck bool `json:"stuck,omitempty"`
	// Await waits until a file exists, or until the turn is cancelled.
	Await string `json:"await,omitempty"`
	// Exit ends the process with a code, Signal with the signal of that number.
	Exit   *int `json:"exit,omitempty"`
	Signal int  `json:"signal,omitempty"`
	// Line is written to standard output with a line feed, Raw without.
	Line string `json:"line,omitempty"`
	Raw  string `json:"raw,omitempty"`
	// Flood is the number of bytes of one line that is no JSON.
	Flood int `json:"flood,omitempty"`
	// Stderr is written to standard error.
	Stderr string `json:"stderr,omitempty"`
	// Pid writes the process ID of the agent to the file.
	Pid string `json:"pid,omitempty"`
	// Fork starts a process that does not end by itself, and writes its process ID to the file.
	Fork string `json:"fork,omitempty"`
}

// Tool is a tool call.
type Tool struct {
	ID       string          `json:"id"`
	Title    string          `json:"title"`
	Kind     string          `json:"kind,omitempty"`
	RawInput json.RawMessage `json:"raw_input,omitempty"`
	Steps    []Step          `json:"steps,omitempty"`
}

// Ask is a question for permission.
type Ask struct {
	// ToolCall is the member toolCall; a call "call-1" to execute without it.
	ToolCall json.RawMessage `json:"tool_call,omitempty"`
	// Options is the member options; allow_once and reject_once without it, with those IDs.
	Options json.RawMessage `json:"options,omitempty"`
	// Allowed is done after an option of a kind allow_*, Rejected after one of reject_*, Cancelled after none.
	Allowed   []Step `json:"allowed,omitempty"`
	Rejected  []Step `json:"rejected,omitempty"`
	Cancelled []Step `json:"cancelled,omitempty"`
}

// File is a file, its path relative to the agent's directory.
type File struct {
	Path    string `json:"path"`
	Content string `json:"content,omitempty"`
	Line    int    `json:"line,omitempty"`
	Limit   int    `json:"limit,omitempty"`
}

// Save writes the script to a new file in dir and returns its path. It returns an error for a Match that does not compile.
func (s Script) Save(dir string) (string, error) {
	for _, r := range s.Rules {
		if _, err := regexp.Compile(r.Match); err != nil {
			return "", fmt.Errorf("crewtest: match: %w", err)
		}
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("crewtest: script: %w", err)
	}
	name := filepath.Join(dir, "script-"+rand.Text()+".json")
	if err := os.WriteFile(name, raw, 0o600); err != nil {
		return "", fmt.Errorf("crewtest: script: %w", err)
	}
	return filepath.Abs(name)
}

// Command writes the script to a file in dir and returns the command line with which the calling binary is its agent. The
// binary must call Main.
func Command(dir string, s Script) ([]string, error) {
	path, err := s.Save(dir)
	if err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("crewtest: %w", err)
	}
	return []string{exe, argument, path}, nil
}
