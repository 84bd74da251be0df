package topics

// The bodies of {agent}-crew-agent-inputs, keyed by the ID of a coding agent.

// CrewSpawn starts the agent. The crew writes it.
type CrewSpawn struct {
	Member   CrewMember `json:"member"`
	Task     string     `json:"task,omitzero"`
	ParentID string     `json:"parent_id,omitzero"`
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

func (CrewSpawn) CrewKind() string { return "spawn" }

// CrewPrompt is text for the agent: a turn of its own, or a part of the next one while the agent is busy.
type CrewPrompt struct {
	Text     string `json:"text"`
	Priority bool   `json:"priority,omitzero"`
	// FromID is the agent that wrote it, "user" for a person, or empty for the crew itself.
	FromID string `json:"from_id,omitzero"`
	// Blocks are further content blocks of ACP, such as images: an array, or nil.
	Blocks Raw `json:"blocks,omitzero"`
}

func (CrewPrompt) CrewKind() string { return "prompt" }

// CrewNote is a note of the system, such as the answer to a command. While the agent is busy, the newest 50 notes wait and are
// delivered as one message.
type CrewNote struct {
	Text string `json:"text"`
	// CommandID is the input_id of the CrewCommand that the note answers, empty if the note answers none.
	CommandID string `json:"command_id,omitzero"`
}

func (CrewNote) CrewKind() string { return "note" }

// CrewRefresh is a CREW_UPDATE. It is delivered if the agent is running and Digest is not that of the last one delivered.
type CrewRefresh struct {
	Text   string `json:"text"`
	Digest string `json:"digest"`
}

func (CrewRefresh) CrewKind() string { return "refresh" }

// CrewInterrupt cancels the agent's turn; Text is what it gets next.
type CrewInterrupt struct {
	Text   string `json:"text,omitzero"`
	FromID string `json:"from_id,omitzero"`
}

func (CrewInterrupt) CrewKind() string { return "interrupt" }

// CrewTerminate ends the agent.
type CrewTerminate struct {
	Reason string `json:"reason,omitzero"`
}

func (CrewTerminate) CrewKind() string { return "terminate" }

// CrewPause holds back, or releases, what waits for the agent.
type CrewPause struct {
	Paused bool `json:"paused"`
}

func (CrewPause) CrewKind() string { return "pause" }

// CrewAutopilot switches the agent's autopilot: whether the agent's next permission requests are allowed without a person.
// Dangerous requests wait for a person nevertheless.
type CrewAutopilot struct {
	On bool `json:"on"`
}

func (CrewAutopilot) CrewKind() string { return "autopilot" }

// CrewTask sets what the agent works on, empty for nothing.
type CrewTask struct {
	Task string `json:"task,omitzero"`
}

func (CrewTask) CrewKind() string { return "task" }

// CrewClearQueue drops what waits for the agent.
type CrewClearQueue struct{}

func (CrewClearQueue) CrewKind() string { return "clear_queue" }

// CrewRestart is the crew's answer to CrewRestartDue, and restarts an agent that a person wants restarted.
type CrewRestart struct {
	// Refused says that the agent is not restarted: its parent is gone.
	Refused bool `json:"refused,omitzero"`
	// Manual says that a person asked for it: the agent's process is ended first, and its crashes are forgotten.
	Manual bool   `json:"manual,omitzero"`
	Prompt string `json:"prompt,omitzero"` // as in CrewSpawn, for an agent that cannot continue its session
}

func (CrewRestart) CrewKind() string { return "restart" }

// The following are written by the host. Run is the action_id of the CrewStart that began the process.

// CrewHostBeat says that the host is alive.
type CrewHostBeat struct {
	Run string `json:"run"`
}

func (CrewHostBeat) CrewKind() string { return "host_beat" }

// CrewStarted says that the agent's process runs and answered initialize.
type CrewStarted struct {
	Run string `json:"run"`
	// Capabilities is agentCapabilities of the answer, and Info agentInfo.
	Capabilities Raw `json:"capabilities,omitzero"`
	Info         Raw `json:"info,omitzero"`
	// Root and Below are those of CrewMember.
	Root  string `json:"root,omitzero"`
	Below string `json:"below,omitzero"`
}

func (CrewStarted) CrewKind() string { return "started" }

// CrewSessionReady says that the ACP session can be prompted.
type CrewSessionReady struct {
	Run       string `json:"run"`
	SessionID string `json:"session_id"`
	// Resumed says that an earlier session is continued.
	Resumed bool `json:"resumed,omitzero"`
	// Modes and Options are modes and configOptions of the answer. The current mode is the one that the host has set.
	Modes   Raw `json:"modes,omitzero"`
	Options Raw `json:"options,omitzero"`
}

func (CrewSessionReady) CrewKind() string { return "session_ready" }

// The stages of a CrewStartFailed.
const (
	CrewStageProcess    = "process"    // the process cannot be started
	CrewStageInitialize = "initialize" // the handshake failed, or the protocol version is another
	CrewStageSession    = "session"    // no session
	CrewStageResume     = "resume"     // the session cannot be continued
)

// CrewStartFailed says that the agent did not come to a session. CrewExited follows if there was a process.
type CrewStartFailed struct {
	Run   string `json:"run"`
	Stage string `json:"stage"`
	Error string `json:"error"`
	// Process says that there was a process, so that CrewExited follows.
	Process bool `json:"process,omitzero"`
}

func (CrewStartFailed) CrewKind() string { return "start_failed" }

// CrewUpdates are updates of an ACP session in the order in which they came: the member update of the notifications.
type CrewUpdates struct {
	Run       string `json:"run"`
	SessionID string `json:"session_id"`
	// Replay says that they came before session/load was answered: they are the past.
	Replay  bool  `json:"replay,omitzero"`
	Updates []Raw `json:"updates"`
	// SentMS is when the first of them came, in Unix milliseconds.
	SentMS int64 `json:"sent_ms,omitzero"`
}

func (CrewUpdates) CrewKind() string { return "updates" }

// CrewPermission is a question that the agent waits for: a session/request_permission, or a request for a file or a terminal
// that the host's policy wants asked.
type CrewPermission struct {
	Run       string `json:"run"`
	RequestID string `json:"request_id"` // of the host
	SessionID string `json:"session_id"`
	// ToolCall and Options are those of session/request_permission. The host refuses a call that is too large to be shown.
	ToolCall Raw `json:"tool_call,omitzero"`
	Options  Raw `json:"options,omitzero"`
	// Method is the ACP method for a file or a terminal, such as fs/write_text_file, else empty. Args are its arguments.
	Method string `json:"method,omitzero"`
	Args   Raw    `json:"args,omitzero"`
}

func (CrewPermission) CrewKind() string { return "permission" }

// CrewShortened is the member of _meta with the number of members that a host has dropped from a large update or tool call. Of the
// member rawInput, the beginning is kept.
const CrewShortened = "turntable.dropped"

// CrewTurnEnded is the answer to a prompt.
type CrewTurnEnded struct {
	Run        string `json:"run"`
	PromptID   string `json:"prompt_id"`
	StopReason string `json:"stop_reason,omitzero"`
	Error      string `json:"error,omitzero"` // the call failed
	Usage      Raw    `json:"usage,omitzero"`
}

func (CrewTurnEnded) CrewKind() string { return "turn_ended" }

// CrewExited says that the agent's process has ended. Code is 1 for an end by a signal.
type CrewExited struct {
	Run    string `json:"run"`
	Code   int    `json:"code"`
	Signal string `json:"signal,omitzero"`
	Error  string `json:"error,omitzero"`
	// Stopped says that the host ended the process because the host itself is stopping.
	Stopped bool `json:"stopped,omitzero"`
}

func (CrewExited) CrewKind() string { return "exited" }

// CrewProblem is something that a person should know about the agent's process and that has no other effect, such as lines
// that are not JSON.
type CrewProblem struct {
	Run     string `json:"run"`
	Message string `json:"message"`
}

func (CrewProblem) CrewKind() string { return "problem" }

// CrewGateEnded is the outcome of a gate of the agent, which the group forwards to its own input.
type CrewGateEnded struct {
	GateID   string     `json:"gate_id"`
	Status   GateStatus `json:"status"`
	Cause    GateCause  `json:"cause"`
	OptionID string     `json:"option_id,omitzero"`
	By       string     `json:"by,omitzero"`
}

func (CrewGateEnded) CrewKind() string { return "gate_ended" }
