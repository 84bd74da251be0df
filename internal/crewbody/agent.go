package crewbody

import "github.com/turntable-streams/turntable/topics"

// The bodies of {agent}-crew-agent-inputs, keyed by the ID of a coding agent.

// Spawn starts the agent. The crew writes it.
type Spawn struct {
	Member   Member `json:"member"`
	Task     string `json:"task,omitzero"`
	ParentID string `json:"parent_id,omitzero"`
	// Level is how many leads are above the agent. A lead with a parent is a sub-lead.
	Level     int  `json:"level,omitzero"`
	Lead      bool `json:"lead,omitzero"`
	Autopilot bool `json:"autopilot,omitzero"`
	// SessionID is the ACP session to continue, or empty for a new one.
	SessionID string `json:"session_id,omitzero"`
	// Prompt is the first prompt: role, manifest and task. It is not sent to a session that is continued.
	Prompt string `json:"prompt,omitzero"`
	// NoRestart switches restarts after a crash off. MaxRestarts is the number of crashes that reach the limit; 0 means 3.
	NoRestart   bool `json:"no_restart,omitzero"`
	MaxRestarts int  `json:"max_restarts,omitzero"`
}

// Prompt is text for the agent: a turn of its own, or a part of the next one while the agent is busy.
type Prompt struct {
	Text     string `json:"text"`
	Priority bool   `json:"priority,omitzero"`
	// FromID is the agent that wrote it, "user" for a person, or empty for the crew itself.
	FromID string `json:"from_id,omitzero"`
	// Blocks are further content blocks of ACP, such as images: an array, or nil.
	Blocks topics.Raw `json:"blocks,omitzero"`
}

// Note is a note of the system, such as the answer to a command. While the agent is busy, the newest 50 notes wait and are
// delivered as one message.
type Note struct {
	Text string `json:"text"`
	// CommandID is the input_id of the Command that the note answers, empty if the note answers none.
	CommandID string `json:"command_id,omitzero"`
}

// Refresh is a CREW_UPDATE. It is delivered if the agent is running and Digest is not that of the last one delivered.
type Refresh struct {
	Text   string `json:"text"`
	Digest string `json:"digest"`
}

// Interrupt cancels the agent's turn; Text is what it gets next.
type Interrupt struct {
	Text   string `json:"text,omitzero"`
	FromID string `json:"from_id,omitzero"`
}

// Terminate ends the agent.
type Terminate struct {
	Reason string `json:"reason,omitzero"`
}

// Pause holds back, or releases, what waits for the agent.
type Pause struct {
	Paused bool `json:"paused"`
}

// Autopilot switches the agent's autopilot: whether the agent's next permission requests are allowed without a person.
// Dangerous requests wait for a person nevertheless.
type Autopilot struct {
	On bool `json:"on"`
}

// Task sets what the agent works on, empty for nothing.
type Task struct {
	Task string `json:"task,omitzero"`
}

// ClearQueue drops what waits for the agent.
type ClearQueue struct{}

// Restart is the crew's answer to RestartDue, and restarts an agent that a person wants restarted.
type Restart struct {
	// Refused says that the agent is not restarted: its parent is gone.
	Refused bool `json:"refused,omitzero"`
	// Manual says that a person asked for it: the agent's process is ended first, and its crashes are forgotten.
	Manual bool   `json:"manual,omitzero"`
	Prompt string `json:"prompt,omitzero"` // as in Spawn, for an agent that cannot continue its session
}

// The following are written by the host. Run is the action_id of the Start that began the process.

// HostBeat says that the host is alive.
type HostBeat struct {
	Run string `json:"run"`
}

// Started says that the agent's process runs and answered initialize.
type Started struct {
	Run string `json:"run"`
	// Capabilities is agentCapabilities of the answer, and Info agentInfo.
	Capabilities topics.Raw `json:"capabilities,omitzero"`
	Info         topics.Raw `json:"info,omitzero"`
	// Root and Below are those of Member.
	Root  string `json:"root,omitzero"`
	Below string `json:"below,omitzero"`
}

// SessionReady says that the ACP session can be prompted.
type SessionReady struct {
	Run       string `json:"run"`
	SessionID string `json:"session_id"`
	// Resumed says that an earlier session is continued.
	Resumed bool `json:"resumed,omitzero"`
	// Modes and Options are modes and configOptions of the answer. The current mode is the one that the host has set.
	Modes   topics.Raw `json:"modes,omitzero"`
	Options topics.Raw `json:"options,omitzero"`
}

// The stages of a StartFailed.
const (
	StageProcess    = "process"    // the process cannot be started
	StageInitialize = "initialize" // the handshake failed, or the protocol version is another
	StageSession    = "session"    // no session
	StageResume     = "resume"     // the session cannot be continued
)

// StartFailed says that the agent did not come to a session. Exited follows if there was a process.
type StartFailed struct {
	Run   string `json:"run"`
	Stage string `json:"stage"`
	Error string `json:"error"`
	// Process says that there was a process, so that Exited follows.
	Process bool `json:"process,omitzero"`
}

// Updates are updates of an ACP session in the order in which they came: the member update of the notifications.
type Updates struct {
	Run       string `json:"run"`
	SessionID string `json:"session_id"`
	// Replay says that they came before session/load was answered: they are the past.
	Replay  bool         `json:"replay,omitzero"`
	Updates []topics.Raw `json:"updates"`
	// SentMS is when the first of them came, in Unix milliseconds.
	SentMS int64 `json:"sent_ms,omitzero"`
}

// Permission is a question that the agent waits for: a session/request_permission, or a request for a file or a terminal
// that the host's policy wants asked.
type Permission struct {
	Run       string `json:"run"`
	RequestID string `json:"request_id"` // of the host
	SessionID string `json:"session_id"`
	// ToolCall and Options are those of session/request_permission. The host refuses a call that is too large to be shown.
	ToolCall topics.Raw `json:"tool_call,omitzero"`
	Options  topics.Raw `json:"options,omitzero"`
	// Method is the ACP method for a file or a terminal, such as fs/write_text_file, else empty. Args are its arguments.
	Method string     `json:"method,omitzero"`
	Args   topics.Raw `json:"args,omitzero"`
}

// Shortened is the member of _meta with the number of members that a host has dropped from a large update or tool call. Of the
// member rawInput, the beginning is kept.
const Shortened = "turntable.dropped"

// TurnEnded is the answer to a prompt.
type TurnEnded struct {
	Run        string     `json:"run"`
	PromptID   string     `json:"prompt_id"`
	StopReason string     `json:"stop_reason,omitzero"`
	Error      string     `json:"error,omitzero"` // the call failed
	Usage      topics.Raw `json:"usage,omitzero"`
}

// Exited says that the agent's process has ended. Code is 1 for an end by a signal.
type Exited struct {
	Run    string `json:"run"`
	Code   int    `json:"code"`
	Signal string `json:"signal,omitzero"`
	Error  string `json:"error,omitzero"`
	// Stopped says that the host ended the process because the host itself is stopping.
	Stopped bool `json:"stopped,omitzero"`
}

// Problem is something that a person should know about the agent's process and that has no other effect, such as lines
// that are not JSON.
type Problem struct {
	Run     string `json:"run"`
	Message string `json:"message"`
}

// GateEnded is the outcome of a gate of the agent, which the group forwards to its own input.
type GateEnded struct {
	GateID   string            `json:"gate_id"`
	Status   topics.GateStatus `json:"status"`
	Cause    topics.GateCause  `json:"cause"`
	OptionID string            `json:"option_id,omitzero"`
	By       string            `json:"by,omitzero"`
}
