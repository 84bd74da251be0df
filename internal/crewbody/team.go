package crewbody

import "github.com/turntable-streams/turntable/topics"

// The bodies of {agent}-crew-inputs, keyed by the ID of a crew.

// Configure says where a crew works. The first input of a crew that has no other is this, or agents cannot be spawned.
type Configure struct {
	ProjectID   string `json:"project_id,omitzero"`
	ProjectName string `json:"project_name,omitzero"`
	Host        string `json:"host"`
	Cwd         string `json:"cwd"`
	Repository  string `json:"repository,omitzero"`
}

// SpawnAsked asks for a new agent of the crew.
type SpawnAsked struct {
	AgentID   string `json:"agent_id"`
	RoleID    string `json:"role_id"`
	ParentID  string `json:"parent_id,omitzero"`
	Task      string `json:"task,omitzero"`
	Context   string `json:"context,omitzero"`
	Model     string `json:"model,omitzero"`
	Provider  string `json:"provider,omitzero"`
	Cwd       string `json:"cwd,omitzero"` // that of the crew if empty
	SessionID string `json:"session_id,omitzero"`
	Autopilot bool   `json:"autopilot,omitzero"`
	NoRestart bool   `json:"no_restart,omitzero"`
	By        string `json:"by,omitzero"`
}

// TerminateAsked asks to end an agent and its children.
type TerminateAsked struct {
	AgentID string `json:"agent_id"`
	Reason  string `json:"reason,omitzero"`
	By      string `json:"by,omitzero"`
}

// RestartAsked asks to end an agent's process and to start it again.
type RestartAsked struct {
	AgentID string `json:"agent_id"`
	By      string `json:"by,omitzero"`
}

// Say is a message of a person to an agent, or to all running agents if To is "*". Agents that the text mentions get it too.
type Say struct {
	To        string     `json:"to"`
	Text      string     `json:"text"`
	Interrupt bool       `json:"interrupt,omitzero"`
	Blocks    topics.Raw `json:"blocks,omitzero"` // images, for To only
	By        string     `json:"by,omitzero"`
}

// GroupSay is a message of a person to a group of the crew, who becomes a member as "human". With Emoji it is a reaction to
// MessageID instead, or its removal.
type GroupSay struct {
	Group     string `json:"group"`
	Text      string `json:"text,omitzero"`
	MessageID string `json:"message_id,omitzero"`
	Emoji     string `json:"emoji,omitzero"`
	Remove    bool   `json:"remove,omitzero"`
	By        string `json:"by,omitzero"`
}

// Decide resolves decisions: Action is confirm, reject or dismiss.
type Decide struct {
	DecisionIDs []string `json:"decision_ids"`
	Action      string   `json:"action"`
	By          string   `json:"by,omitzero"`
}

// QueueHeld says that a person looks at the open decisions, which then do not confirm themselves. Until limits it: the
// door repeats it while the person's connection is open.
type QueueHeld struct {
	Client string `json:"client"`
	Held   bool   `json:"held"`
	// UntilMS is in Unix milliseconds.
	UntilMS int64 `json:"until_ms,omitzero"`
}

// SystemPaused pauses or resumes all agents of the crew.
type SystemPaused struct {
	Paused bool   `json:"paused"`
	By     string `json:"by,omitzero"`
}

// The following are written by the groups of agents and of repositories.

// AgentChanged is the agent's state as the crew shows it. It is written when Status, SessionID or Model changes.
type AgentChanged struct {
	AgentID     string `json:"agent_id"`
	Status      string `json:"status"` // creating, running, idle, completed, failed or terminated
	SessionID   string `json:"session_id,omitzero"`
	Model       string `json:"model,omitzero"`
	ContextUsed int64  `json:"context_used,omitzero"`
	ContextSize int64  `json:"context_size,omitzero"`
	Pending     int    `json:"pending,omitzero"`
	Resuming    bool   `json:"resuming,omitzero"`
}

// The causes of a AgentExited.
const (
	ExitClean       = "clean"        // code 0
	ExitCrash       = "crash"        // another code
	ExitTerminated  = "terminated"   // asked for
	ExitHostStopped = "host_stopped" // the host stopped or was started anew
	ExitStart       = "start_failed" // the agent came to no session
)

// AgentExited says that the process of an agent has ended. Restarting says that the agent asks with RestartDue later.
type AgentExited struct {
	AgentID    string `json:"agent_id"`
	Code       int    `json:"code"`
	Cause      string `json:"cause"`
	Error      string `json:"error,omitzero"`
	Crashes    int    `json:"crashes,omitzero"`
	Restarting bool   `json:"restarting,omitzero"`
	// Output is the end of what the agent wrote for its task, at most 16,000 characters.
	Output string `json:"output,omitzero"`
	// Heard is the number of the last input of the crew that the agent knew, 0 if unknown: the process had no part in what the
	// crew wrote after it.
	Heard int64 `json:"heard,omitzero"`
}

// AgentIdle says that the agent has had nothing to do for 500 ms: its turn ended, no message waits for it, and its commands are
// answered, except those whose answer is overdue.
type AgentIdle struct {
	AgentID    string `json:"agent_id"`
	StopReason string `json:"stop_reason"`
	SessionID  string `json:"session_id,omitzero"`
	Output     string `json:"output,omitzero"` // as in AgentExited
	Heard      int64  `json:"heard,omitzero"`  // as in AgentExited
}

// Compacted says that the agent's context was compacted.
type Compacted struct {
	AgentID  string `json:"agent_id"`
	Previous int64  `json:"previous"`
	Current  int64  `json:"current"`
}

// RestartDue asks whether a crashed agent may be restarted. The answer is Restart.
type RestartDue struct {
	AgentID string `json:"agent_id"`
	Crashes int    `json:"crashes"`
}

// Dropped says that a message could not be delivered to an agent, because it has ended or too much waits for it.
type Dropped struct {
	AgentID string `json:"agent_id"`
	FromID  string `json:"from_id,omitzero"`
	Reason  string `json:"reason"`
}

// The actions of a LockChanged.
const (
	LockAcquired = "acquired"
	LockReleased = "released"
	LockExpired  = "expired"
	LockDenied   = "denied"
)

// LockChanged says what happened to a lock.
type LockChanged struct {
	Action     string `json:"action"`
	Repository string `json:"repository"`
	FilePath   string `json:"file_path"`
	AgentID    string `json:"agent_id"`
	AgentRole  string `json:"agent_role,omitzero"`
	HolderID   string `json:"holder_id,omitzero"` // of LockDenied
	Reason     string `json:"reason,omitzero"`
	ExpiresMS  int64  `json:"expires_ms,omitzero"`
}

// Committed says that an agent's commit was made.
type Committed struct {
	AgentID string   `json:"agent_id"`
	Commit  string   `json:"commit"`
	Files   []string `json:"files"`
	Message string   `json:"message"`
}
