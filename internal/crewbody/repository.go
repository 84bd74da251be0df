package crewbody

// The bodies of {agent}-crew-repository-inputs, keyed by repository, beside Command, Receipt, HostStarted and Due.

// LockAsked asks for a lock without a command of the agent: a person's request.
type LockAsked struct {
	Member   Member `json:"member"`
	FilePath string `json:"file_path"`
	Reason   string `json:"reason,omitzero"`
	TTLMS    int64  `json:"ttl_ms,omitzero"` // 0 means 300,000
	By       string `json:"by,omitzero"`
}

// UnlockAsked releases a lock for a person. Force releases it also if another agent holds it or a commit waits for its
// receipt. Then the path is free with the receipt, or once the host does not make the commit any more.
type UnlockAsked struct {
	AgentID  string `json:"agent_id"`
	FilePath string `json:"file_path"`
	Force    bool   `json:"force,omitzero"`
	By       string `json:"by,omitzero"`
}

// AgentActive says that the agent works, which renews its locks. The agent's group writes it at most once a minute.
type AgentActive struct {
	Member Member `json:"member"`
}

// AgentEnded releases the locks of an agent that has ended. Those whose commit waits for its receipt are released with the receipt.
// The agent gets no answers to its commands.
type AgentEnded struct {
	AgentID string `json:"agent_id"`
}

// ReleaseLocks releases the locks of an agent that goes on, because its lead has taken its task back. Those whose commit waits for
// its receipt are released with the receipt. Commits that wait for that one are refused. The agent gets the answers to its commands.
type ReleaseLocks struct {
	AgentID string `json:"agent_id"`
}
