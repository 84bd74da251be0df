package command

import (
	"errors"

	"github.com/turntable-streams/turntable/topics"
)

// CreateAgent spawns a child.
type CreateAgent struct {
	Role      string   `json:"role" crew:"id,required"`
	Task      string   `json:"task" crew:"text"`
	Model     string   `json:"model" crew:"name"`
	Provider  string   `json:"provider" crew:"name"`
	Context   string   `json:"context" crew:"text"`
	DagTaskID string   `json:"dagTaskId" crew:"id"`
	DependsOn []string `json:"dependsOn" crew:"id,max=20"`
	Name      string   `json:"name" crew:"name"`
	SessionID string   `json:"sessionId" crew:"id"`
}

// Delegate gives a child a task.
type Delegate struct {
	To        string   `json:"to" crew:"id,required"`
	Task      string   `json:"task" crew:"text,required"`
	Context   string   `json:"context" crew:"text"`
	DagTaskID string   `json:"dagTaskId" crew:"id"`
	DependsOn []string `json:"dependsOn" crew:"id,max=20"`
}

// TerminateAgent ends a descendant.
type TerminateAgent struct {
	AgentID string `json:"agentId" crew:"id,required"`
	Reason  string `json:"reason" crew:"text"`
}

// CancelDelegation cancels one delegation or those of an agent. At least one of the two is set.
type CancelDelegation struct {
	AgentID      string `json:"agentId" crew:"id"`
	DelegationID string `json:"delegationId" crew:"id"`
}

func (c CancelDelegation) check() error {
	if c.AgentID == "" && c.DelegationID == "" {
		return errors.New("agentId or delegationId is needed")
	}
	return nil
}

// AgentMessage is a message to an agent.
type AgentMessage struct {
	To      string `json:"to" crew:"id,required"`
	Content string `json:"content" crew:"text,required"`
}

// DirectMessage is a message that waits until its target is idle.
type DirectMessage struct {
	To      string `json:"to" crew:"id,required"`
	Content string `json:"content" crew:"text,required"`
}

// Broadcast is a message to the crew.
type Broadcast struct {
	Content string `json:"content" crew:"text,required"`
}

// Interrupt is a message for which its target stops what it does.
type Interrupt struct {
	To      string `json:"to" crew:"id,required"`
	Content string `json:"content" crew:"text,required"`
}

// QueryPeers asks for the siblings and the parent.
type QueryPeers struct{}

// CreateGroup creates a group. At least one of Members and Roles is not empty.
type CreateGroup struct {
	Name    string   `json:"name" crew:"name,required"`
	Members []string `json:"members" crew:"id,max=100"`
	Roles   []string `json:"roles" crew:"id,max=100"`
}

func (c CreateGroup) check() error {
	if len(c.Members) == 0 && len(c.Roles) == 0 {
		return errors.New("members or roles is needed")
	}
	return nil
}

// AddToGroup adds members to a group.
type AddToGroup struct {
	Group   string   `json:"group" crew:"name,required"`
	Members []string `json:"members" crew:"id,max=100,required"`
}

// RemoveFromGroup removes members from a group.
type RemoveFromGroup struct {
	Group   string   `json:"group" crew:"name,required"`
	Members []string `json:"members" crew:"id,max=100,required"`
}

// GroupMessage is a message to the members of a group.
type GroupMessage struct {
	Group   string `json:"group" crew:"name,required"`
	Content string `json:"content" crew:"text,required"`
}

// ListGroups asks for the agent's groups. QUERY_GROUPS is the same.
type ListGroups struct{}

// React adds a reaction to a message of a group, the newest if MessageID is empty.
type React struct {
	Group     string `json:"group" crew:"name,required"`
	Emoji     string `json:"emoji" crew:"emoji,required"`
	MessageID string `json:"messageId" crew:"id"`
}

// LockFile locks a path.
type LockFile struct {
	FilePath string `json:"filePath" crew:"path,required"`
	Reason   string `json:"reason" crew:"text"`
}

// UnlockFile releases a path.
type UnlockFile struct {
	FilePath string `json:"filePath" crew:"path,required"`
}

// Commit commits the agent's locked files and, if it holds them, Files.
type Commit struct {
	Message string   `json:"message" crew:"text"`
	Files   []string `json:"files" crew:"path,max=500"`
}

// Activity adds an entry to the ledger. Action is another spelling of ActionType, which some prompts teach; Decode sets both.
type Activity struct {
	ActionType string     `json:"actionType" crew:"id"`
	Action     string     `json:"action" crew:"id"`
	Summary    string     `json:"summary" crew:"text"`
	Details    topics.Raw `json:"details"`
}

// Decision records a decision.
type Decision struct {
	Title             string `json:"title" crew:"name,required"`
	Rationale         string `json:"rationale" crew:"text"`
	NeedsConfirmation bool   `json:"needsConfirmation"`
}

// Progress reports progress. Percent is nil if it was not given.
type Progress struct {
	Summary string   `json:"summary" crew:"text"`
	Percent *Percent `json:"percent"`
	Status  string   `json:"status" crew:"name"`
	// What is done, what is being done, and what cannot be.
	Completed  []string `json:"completed" crew:"text,max=100"`
	InProgress []string `json:"in_progress" crew:"text,max=100"`
	Blocked    []string `json:"blocked" crew:"text,max=100"`
}

// QueryCrew asks for the crew's roster.
type QueryCrew struct{}

// HaltHeartbeat stops the reminders to an idle lead.
type HaltHeartbeat struct{}

// ResumeHeartbeat starts them again.
type ResumeHeartbeat struct{}

// RequestLimitChange asks for another limit of agents.
type RequestLimitChange struct {
	Limit  int    `json:"limit"`
	Reason string `json:"reason" crew:"text"`
}

func (r RequestLimitChange) check() error {
	if r.Limit < 1 || r.Limit > 100 {
		return errors.New("limit: must be from 1 to 100")
	}
	return nil
}

// SetTimer sets a timer that sends Message to the agent.
type SetTimer struct {
	Label   string `json:"label" crew:"name,required"`
	Delay   Delay  `json:"delay"`
	Message string `json:"message" crew:"text,required"`
	Repeat  bool   `json:"repeat"`
}

func (s SetTimer) check() error {
	if s.Delay < minDelay || s.Delay > maxDelay {
		return errors.New("delay: must be from 5 seconds to 24 hours, a number of seconds or a text such as 5m")
	}
	return nil
}

// CancelTimer cancels a timer. At least one of the two is set.
type CancelTimer struct {
	TimerID string `json:"timerId" crew:"id"`
	Label   string `json:"label" crew:"name"`
}

func (c CancelTimer) check() error {
	if c.TimerID == "" && c.Label == "" {
		return errors.New("timerId or label is needed")
	}
	return nil
}

// ListTimers asks for the agent's timers.
type ListTimers struct{}
