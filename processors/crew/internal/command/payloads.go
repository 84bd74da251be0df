package command

import (
	"cmp"
	"errors"

	"github.com/turntable-streams/turntable/topics"
)

// Nothing is the payload of a command that needs none.
type Nothing struct{}

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

// Message is a message to an agent: of AGENT_MESSAGE, of DIRECT_MESSAGE, which waits until its target is idle, or of INTERRUPT, for
// which its target stops what it does.
type Message struct {
	To      string `json:"to" crew:"id,required"`
	Content string `json:"content" crew:"text,required"`
}

// Broadcast is a message to the crew.
type Broadcast struct {
	Content string `json:"content" crew:"text,required"`
}

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

// Members are members of a group, for ADD_TO_GROUP and REMOVE_FROM_GROUP.
type Members struct {
	Group   string   `json:"group" crew:"name,required"`
	Members []string `json:"members" crew:"id,max=100,required"`
}

// GroupMessage is a message to the members of a group.
type GroupMessage struct {
	Group   string `json:"group" crew:"name,required"`
	Content string `json:"content" crew:"text,required"`
}

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

func (a *Activity) check() error {
	a.ActionType = cmp.Or(a.ActionType, a.Action)
	a.Action = a.ActionType
	return nil
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

// Task is a task of DECLARE_TASKS, and ADD_TASK.
type Task struct {
	TaskID      string   `json:"taskId" crew:"task,required"`
	Role        string   `json:"role" crew:"id,required"`
	Description string   `json:"description" crew:"text"`
	DependsOn   []string `json:"dependsOn" crew:"task,max=100"`
	Files       []string `json:"files" crew:"path,max=500"`
	Status      string   `json:"status" crew:"name"`
	Priority    int      `json:"priority"`
}

// DeclareTasks adds tasks.
type DeclareTasks struct {
	Tasks []Task `json:"tasks" crew:"task,max=500,required"`
}

// CompleteTask says that a task is done. TaskID is empty for the agent's own task.
type CompleteTask struct {
	TaskID  string `json:"taskId" crew:"task"`
	Summary string `json:"summary" crew:"text"` // Decode cuts it to 10,000 characters
	Status  string `json:"status" crew:"name"`
	Output  string `json:"output" crew:"text"`
}

func (c *CompleteTask) check() error {
	if runes := []rune(c.Summary); len(runes) > maxSummary {
		c.Summary = string(runes[:maxSummary])
	}
	return nil
}

// maxSummary is the length in characters to which the summary of a CompleteTask is cut.
const maxSummary = 10_000

// TaskID is the task that a lead pauses, resumes, retries, reopens, skips, cancels or makes ready.
type TaskID struct {
	TaskID string `json:"taskId" crew:"task,required"`
}

// AddDependency makes a task wait for others.
type AddDependency struct {
	TaskID    string   `json:"taskId" crew:"task,required"`
	DependsOn []string `json:"dependsOn" crew:"task,max=20,required"`
}

// AssignTask gives a task to a child. REASSIGN_TASK takes it from another one.
type AssignTask struct {
	TaskID  string `json:"taskId" crew:"task,required"`
	AgentID string `json:"agentId" crew:"id,required"`
}
