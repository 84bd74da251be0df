package crewbody

import "github.com/turntable-streams/turntable/topics"

// The bodies of {agent}-crew-actions.

// Start starts the process of an agent and a session. Its action_id is the Run of what the host writes about it.
type Start struct {
	AgentID string `json:"agent_id"`
	// Provider names the host's command for the agent. The command itself is the host's configuration.
	Provider string `json:"provider,omitzero"`
	Model    string `json:"model,omitzero"`
	Cwd      string `json:"cwd"`
	// SessionID is the session to continue, or empty.
	SessionID string `json:"session_id,omitzero"`
}

// Send sends session/prompt.
type Send struct {
	AgentID   string     `json:"agent_id"`
	Run       string     `json:"run"`
	PromptID  string     `json:"prompt_id"`
	SessionID string     `json:"session_id"`
	Blocks    topics.Raw `json:"blocks"` // the prompt: an array of content blocks
}

// Cancel sends session/cancel, if the prompt is still open: empty cancels any.
type Cancel struct {
	AgentID   string `json:"agent_id"`
	Run       string `json:"run"`
	PromptID  string `json:"prompt_id,omitzero"`
	SessionID string `json:"session_id"`
}

// Answer answers a Permission: with OptionID selected, or cancelled if it is empty. For a Method, Allowed says whether
// the host carries it out.
type Answer struct {
	AgentID   string `json:"agent_id"`
	Run       string `json:"run"`
	RequestID string `json:"request_id"`
	OptionID  string `json:"option_id,omitzero"`
	Allowed   bool   `json:"allowed,omitzero"`
	// By is who or what decided: a person, autopilot, a grant, the deadline.
	By string `json:"by,omitzero"`
}

// Stop ends the process of an agent.
type Stop struct {
	AgentID string `json:"agent_id"`
	Run     string `json:"run"`
	Reason  string `json:"reason,omitzero"`
}

// Commit commits files. The host looks for the trailer with the action's ID before it commits.
type Commit struct {
	AgentID string `json:"agent_id"`
	Cwd     string `json:"cwd"`
	// Paths are the locked paths, relative to the repository's root, with slashes. One that ends in "/*" is everything below
	// the directory.
	Paths []string `json:"paths"`
	// Released are paths that were in Paths when the action was first given to the host, and that the agent does not hold any more.
	// The host does not commit them, but a commit that the action has already made may contain them.
	Released []string `json:"released,omitzero"`
	Message  string   `json:"message"`
	// Author is the name of the commit's author.
	Author string `json:"author"`
	// Fence is the highest token of the locks. It is part of the trailer.
	Fence int64 `json:"fence"`
	// UntilMS is the time, in Unix milliseconds, from which on the host does not make the commit any more: the paths can have
	// other holders then. 0 means no limit.
	UntilMS int64 `json:"until_ms,omitzero"`
}

// Dirty asks which of the files have changes that are in no commit. The answer is Receipt.Dirty.
type Dirty struct {
	AgentID string   `json:"agent_id"`
	Cwd     string   `json:"cwd"`
	Paths   []string `json:"paths"`
}

// HostClaim says that a run of a host begins, the one of the action's epoch: earlier runs of its name end. Each run writes one.
type HostClaim struct{}
