// Package view has what clients of crews see: the JSON shapes of the WebSocket's frames and of the REST answers, in the names
// of the FlightDeck of github.com/justinchuby/flightdeck. Times are ISO 8601 in UTC with milliseconds, see Time.
package view

import (
	"time"

	"github.com/turntable-streams/turntable/topics"
)

// Time formats Unix milliseconds as clients expect them.
func Time(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// ShortID is what people call an agent: the first 8 characters of its ID.
func ShortID(id string) string { return id[:min(8, len(id))] }

// The statuses of an agent. The last three are terminal.
const (
	Creating   = "creating"
	Running    = "running"
	Idle       = "idle"
	Completed  = "completed"
	Failed     = "failed"
	Terminated = "terminated"
)

// Live reports whether a status is one in which messages are delivered.
func Live(status string) bool { return status == Running || status == Idle }

// Ended reports whether a status is terminal.
func Ended(status string) bool {
	return status == Completed || status == Failed || status == Terminated
}

// Agent is a coding agent.
type Agent struct {
	ID                string            `json:"id"`
	Role              topics.CrewRole   `json:"role"`
	Status            string            `json:"status"`
	Phase             string            `json:"phase"`
	Task              string            `json:"task,omitzero"`
	DagTaskID         string            `json:"dagTaskId,omitzero"`
	ParentID          string            `json:"parentId,omitzero"`
	ChildIDs          []string          `json:"childIds"`
	CreatedAt         string            `json:"createdAt"`
	OutputPreview     string            `json:"outputPreview"`  // the last 4,000 characters
	Modes             topics.Raw        `json:"modes,omitzero"` // of the session: [{id, name, description}]
	CurrentMode       string            `json:"currentModeId,omitzero"`
	Plan              topics.Raw        `json:"plan,omitzero"`
	ToolCalls         []ToolCall        `json:"toolCalls,omitzero"` // the last 50
	SessionID         *string           `json:"sessionId"`
	CrewID            string            `json:"crewId"`
	ProjectName       string            `json:"projectName,omitzero"`
	ProjectID         string            `json:"projectId,omitzero"`
	Model             string            `json:"model"`
	Cwd               string            `json:"cwd,omitzero"`
	InputTokens       int64             `json:"inputTokens"`
	OutputTokens      int64             `json:"outputTokens"`
	ContextWindowSize int64             `json:"contextWindowSize"`
	ContextWindowUsed int64             `json:"contextWindowUsed"`
	PendingMessages   int               `json:"pendingMessages"`
	IsSubLead         bool              `json:"isSubLead"`
	HierarchyLevel    int               `json:"hierarchyLevel"`
	Provider          string            `json:"provider,omitzero"`
	ExitError         string            `json:"exitError,omitzero"`
	Autopilot         bool              `json:"autopilot"`
	Permissions       []PermissionAsked `json:"permissions,omitzero"` // open ones
}

// ToolCall is a tool call of an agent, with all updates merged.
type ToolCall struct {
	ToolCallID string     `json:"toolCallId"`
	Title      string     `json:"title"`
	Kind       string     `json:"kind"`
	Status     string     `json:"status"`
	Content    string     `json:"content,omitzero"`
	Locations  topics.Raw `json:"locations,omitzero"`
	RawInput   topics.Raw `json:"rawInput,omitzero"` // absent if larger than 2 KiB, as RawOutput
	RawOutput  topics.Raw `json:"rawOutput,omitzero"`
}

// PermissionAsked is an open permission request.
type PermissionAsked struct {
	ID        string     `json:"id"` // of the gate
	ToolName  string     `json:"toolName"`
	Arguments topics.Raw `json:"arguments"`        // an object
	Content   topics.Raw `json:"content,omitzero"` // what the agent says the call will change, as ACP has it
	Timestamp string     `json:"timestamp"`
	Shown
	ExpiresAt string     `json:"expiresAt"`
	Dangerous bool       `json:"dangerous"`
	Options   topics.Raw `json:"options,omitzero"`
}

// Shown says how much of a permission request is shown.
type Shown struct {
	// Truncated says that Arguments and Content are not the whole request, which URL has.
	Truncated bool `json:"truncated,omitzero"`
	// Bytes and ArgsSHA256 are the size and the digest of a truncated request. An answer may repeat the digest.
	Bytes      int64  `json:"bytes,omitzero"`
	ArgsSHA256 string `json:"argsSha256,omitzero"`
	// URL is the path of the whole request at the door, empty for a request that is not truncated.
	URL string `json:"url,omitzero"`
}

// FileLock is a lock.
type FileLock struct {
	FilePath   string `json:"filePath"`
	AgentID    string `json:"agentId"`
	AgentRole  string `json:"agentRole"`
	ProjectID  string `json:"projectId"`
	Repository string `json:"repository"`
	Reason     string `json:"reason"`
	Token      int64  `json:"token"` // the fencing token
	AcquiredAt string `json:"acquiredAt"`
	ExpiresAt  string `json:"expiresAt"`
}

// Delegation is a task that a lead gave to an agent.
type Delegation struct {
	ID          string `json:"id"`
	FromAgentID string `json:"fromAgentId"`
	ToAgentID   string `json:"toAgentId"`
	ToRole      string `json:"toRole"`
	Task        string `json:"task"`
	Context     string `json:"context,omitzero"`
	Status      string `json:"status"`
	CreatedAt   string `json:"createdAt"`
	CompletedAt string `json:"completedAt,omitzero"`
	Result      string `json:"result,omitzero"`
}

// Decision is a decision of an agent.
type Decision struct {
	ID                string  `json:"id"`
	AgentID           string  `json:"agentId"`
	AgentRole         string  `json:"agentRole"`
	LeadID            *string `json:"leadId"`
	ProjectID         *string `json:"projectId"`
	Title             string  `json:"title"`
	Rationale         string  `json:"rationale"`
	NeedsConfirmation bool    `json:"needsConfirmation"`
	Status            string  `json:"status"` // recorded, confirmed, rejected or dismissed
	AutoApproved      bool    `json:"autoApproved"`
	ConfirmedAt       *string `json:"confirmedAt"`
	Timestamp         string  `json:"timestamp"`
	Category          string  `json:"category"`
}

// Group is a chat group.
type Group struct {
	Name      string   `json:"name"`
	LeadID    string   `json:"leadId"`
	ProjectID string   `json:"projectId,omitzero"`
	Archived  bool     `json:"archived,omitzero"`
	MemberIDs []string `json:"memberIds"`
	CreatedAt string   `json:"createdAt"`
}

// GroupMessage is a message in a chat group.
type GroupMessage struct {
	ID          string              `json:"id"`
	GroupName   string              `json:"groupName"`
	LeadID      string              `json:"leadId"`
	FromAgentID string              `json:"fromAgentId"`
	FromRole    string              `json:"fromRole"`
	Content     string              `json:"content"`
	Reactions   map[string][]string `json:"reactions"`
	Timestamp   string              `json:"timestamp"`
}

// BusMessage is a message between agents.
type BusMessage struct {
	ID        string `json:"id"`
	From      string `json:"from"`
	To        string `json:"to"`   // an agent's ID or "*"
	Type      string `json:"type"` // request, response, broadcast or spawn_request
	Content   string `json:"content"`
	Timestamp string `json:"timestamp"`
}

// Task is a task of a lead's graph of tasks.
type Task struct {
	ID              string   `json:"id"`
	LeadID          string   `json:"leadId"`
	ProjectID       string   `json:"projectId,omitzero"`
	Role            string   `json:"role"`
	Title           string   `json:"title,omitzero"`
	Description     string   `json:"description"`
	Files           []string `json:"files"`
	DependsOn       []string `json:"dependsOn"`
	DagStatus       string   `json:"dagStatus"`
	Priority        int      `json:"priority"`
	AssignedAgentID string   `json:"assignedAgentId,omitzero"`
	FailureReason   string   `json:"failureReason,omitzero"`
	CreatedAt       string   `json:"createdAt"`
	StartedAt       string   `json:"startedAt,omitzero"`
	CompletedAt     string   `json:"completedAt,omitzero"`
}

// Activity is an entry of a crew's ledger.
type Activity struct {
	ID         int64      `json:"id"`
	AgentID    string     `json:"agentId"`
	AgentRole  string     `json:"agentRole"`
	ActionType string     `json:"actionType"`
	Summary    string     `json:"summary"`
	Details    topics.Raw `json:"details"`
	Timestamp  string     `json:"timestamp"`
	ProjectID  string     `json:"projectId"`
}
