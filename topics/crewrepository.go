package topics

// The bodies of {agent}-crew-repository-inputs, keyed by repository, beside CrewCommand, CrewReceipt, CrewHostStarted and CrewDue.

// CrewLockAsked asks for a lock without a command of the agent: a person's request.
type CrewLockAsked struct {
	Member   CrewMember `json:"member"`
	FilePath string     `json:"file_path"`
	Reason   string     `json:"reason,omitzero"`
	TTLMS    int64      `json:"ttl_ms,omitzero"` // 0 means 300,000
	By       string     `json:"by,omitzero"`
}

func (CrewLockAsked) CrewKind() string { return "lock_asked" }

// CrewUnlockAsked releases a lock for a person. Force releases it also if another agent holds it or a commit waits for its
// receipt. Then the path is free with the receipt, or once the host does not make the commit any more.
type CrewUnlockAsked struct {
	AgentID  string `json:"agent_id"`
	FilePath string `json:"file_path"`
	Force    bool   `json:"force,omitzero"`
	By       string `json:"by,omitzero"`
}

func (CrewUnlockAsked) CrewKind() string { return "unlock_asked" }

// CrewAgentActive says that the agent works, which renews its locks. The agent's group writes it at most once a minute.
type CrewAgentActive struct {
	Member CrewMember `json:"member"`
}

func (CrewAgentActive) CrewKind() string { return "agent_active" }

// CrewAgentEnded releases the locks of an agent that has ended. Those whose commit waits for its receipt are released with the receipt.
// The agent gets no answers to its commands.
type CrewAgentEnded struct {
	AgentID string `json:"agent_id"`
}

func (CrewAgentEnded) CrewKind() string { return "agent_ended" }

// CrewReleaseLocks releases the locks of an agent that goes on, because its lead has taken its task back. Those whose commit waits for
// its receipt are released with the receipt. Commits that wait for that one are refused. The agent gets the answers to its commands.
type CrewReleaseLocks struct {
	AgentID string `json:"agent_id"`
}

func (CrewReleaseLocks) CrewKind() string { return "release_locks" }
