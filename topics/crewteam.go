package topics

// The bodies of {agent}-crew-inputs, keyed by the ID of a crew.

// CrewConfigure says where a crew works. The first input of a crew that has no other is this, or agents cannot be spawned.
type CrewConfigure struct {
	ProjectID   string `json:"project_id,omitzero"`
	ProjectName string `json:"project_name,omitzero"`
	Host        string `json:"host"`
	Cwd         string `json:"cwd"`
	Repository  string `json:"repository,omitzero"`
}

func (CrewConfigure) CrewKind() string { return "configure" }

// CrewSpawnAsked asks for a new agent of the crew.
type CrewSpawnAsked struct {
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

func (CrewSpawnAsked) CrewKind() string { return "spawn_asked" }

// CrewTerminateAsked asks to end an agent and its children.
type CrewTerminateAsked struct {
	AgentID string `json:"agent_id"`
	Reason  string `json:"reason,omitzero"`
	By      string `json:"by,omitzero"`
}

func (CrewTerminateAsked) CrewKind() string { return "terminate_asked" }

// CrewRestartAsked asks to end an agent's process and to start it again.
type CrewRestartAsked struct {
	AgentID string `json:"agent_id"`
	By      string `json:"by,omitzero"`
}

func (CrewRestartAsked) CrewKind() string { return "restart_asked" }

// CrewSay is a message of a person to an agent, or to all running agents if To is "*". Agents that the text mentions get it too.
type CrewSay struct {
	To        string `json:"to"`
	Text      string `json:"text"`
	Interrupt bool   `json:"interrupt,omitzero"`
	Blocks    Raw    `json:"blocks,omitzero"` // images, for To only
	By        string `json:"by,omitzero"`
}

func (CrewSay) CrewKind() string { return "say" }

// CrewGroupSay is a message of a person to a group of the crew, who becomes a member as "human". With Emoji it is a reaction to
// MessageID instead, or its removal.
type CrewGroupSay struct {
	Group     string `json:"group"`
	Text      string `json:"text,omitzero"`
	MessageID string `json:"message_id,omitzero"`
	Emoji     string `json:"emoji,omitzero"`
	Remove    bool   `json:"remove,omitzero"`
	By        string `json:"by,omitzero"`
}

func (CrewGroupSay) CrewKind() string { return "group_say" }

// CrewDecide resolves decisions: Action is confirm, reject or dismiss.
type CrewDecide struct {
	DecisionIDs []string `json:"decision_ids"`
	Action      string   `json:"action"`
	By          string   `json:"by,omitzero"`
}

func (CrewDecide) CrewKind() string { return "decide" }

// CrewQueueHeld says that a person looks at the open decisions, which then do not confirm themselves. Until limits it: the
// door repeats it while the person's connection is open.
type CrewQueueHeld struct {
	Client string `json:"client"`
	Held   bool   `json:"held"`
	// UntilMS is in Unix milliseconds.
	UntilMS int64 `json:"until_ms,omitzero"`
}

func (CrewQueueHeld) CrewKind() string { return "queue_held" }

// CrewSystemPaused pauses or resumes all agents of the crew.
type CrewSystemPaused struct {
	Paused bool   `json:"paused"`
	By     string `json:"by,omitzero"`
}

func (CrewSystemPaused) CrewKind() string { return "system_paused" }

// The following are written by the groups of agents and of repositories.

// CrewAgentChanged is the agent's state as the crew shows it. It is written when Status, SessionID or Model changes.
type CrewAgentChanged struct {
	AgentID     string `json:"agent_id"`
	Status      string `json:"status"` // creating, running, idle, completed, failed or terminated
	SessionID   string `json:"session_id,omitzero"`
	Model       string `json:"model,omitzero"`
	ContextUsed int64  `json:"context_used,omitzero"`
	ContextSize int64  `json:"context_size,omitzero"`
	Pending     int    `json:"pending,omitzero"`
	Resuming    bool   `json:"resuming,omitzero"`
}

func (CrewAgentChanged) CrewKind() string { return "agent_changed" }

// The causes of a CrewAgentExited.
const (
	CrewExitClean       = "clean"        // code 0
	CrewExitCrash       = "crash"        // another code
	CrewExitTerminated  = "terminated"   // asked for
	CrewExitHostStopped = "host_stopped" // the host stopped or was started anew
	CrewExitStart       = "start_failed" // the agent came to no session
)

// CrewAgentExited says that the process of an agent has ended. Restarting says that the agent asks with CrewRestartDue later.
type CrewAgentExited struct {
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

func (CrewAgentExited) CrewKind() string { return "agent_exited" }

// CrewAgentIdle says that the agent has had nothing to do for 500 ms: its turn ended, no message waits for it, and its commands are
// answered, except those whose answer is overdue.
type CrewAgentIdle struct {
	AgentID    string `json:"agent_id"`
	StopReason string `json:"stop_reason"`
	SessionID  string `json:"session_id,omitzero"`
	Output     string `json:"output,omitzero"` // as in CrewAgentExited
	Heard      int64  `json:"heard,omitzero"`  // as in CrewAgentExited
}

func (CrewAgentIdle) CrewKind() string { return "agent_idle" }

// CrewCompacted says that the agent's context was compacted.
type CrewCompacted struct {
	AgentID  string `json:"agent_id"`
	Previous int64  `json:"previous"`
	Current  int64  `json:"current"`
}

func (CrewCompacted) CrewKind() string { return "compacted" }

// CrewRestartDue asks whether a crashed agent may be restarted. The answer is CrewRestart.
type CrewRestartDue struct {
	AgentID string `json:"agent_id"`
	Crashes int    `json:"crashes"`
}

func (CrewRestartDue) CrewKind() string { return "restart_due" }

// CrewDropped says that a message could not be delivered to an agent, because it has ended or too much waits for it.
type CrewDropped struct {
	AgentID string `json:"agent_id"`
	FromID  string `json:"from_id,omitzero"`
	Reason  string `json:"reason"`
}

func (CrewDropped) CrewKind() string { return "dropped" }

// The actions of a CrewLockChanged.
const (
	CrewLockAcquired = "acquired"
	CrewLockReleased = "released"
	CrewLockExpired  = "expired"
	CrewLockDenied   = "denied"
)

// CrewLockChanged says what happened to a lock.
type CrewLockChanged struct {
	Action     string `json:"action"`
	Repository string `json:"repository"`
	FilePath   string `json:"file_path"`
	AgentID    string `json:"agent_id"`
	AgentRole  string `json:"agent_role,omitzero"`
	HolderID   string `json:"holder_id,omitzero"` // of CrewLockDenied
	Reason     string `json:"reason,omitzero"`
	ExpiresMS  int64  `json:"expires_ms,omitzero"`
}

func (CrewLockChanged) CrewKind() string { return "lock_changed" }

// CrewCommitted says that an agent's commit was made.
type CrewCommitted struct {
	AgentID string   `json:"agent_id"`
	Commit  string   `json:"commit"`
	Files   []string `json:"files"`
	Message string   `json:"message"`
}

func (CrewCommitted) CrewKind() string { return "committed" }
