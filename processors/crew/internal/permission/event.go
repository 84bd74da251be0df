package permission

import (
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

// Asked is the event of a request that waits for a person.
type Asked struct {
	AgentID   string       `json:"agentId"`
	Request   AskedRequest `json:"request"`
	Dangerous bool         `json:"dangerous"`
	ExpiresAt string       `json:"expiresAt"`
	Options   topics.Raw   `json:"options,omitzero"`
	Preview   preview      `json:"preview"`
}

// AskedRequest is the request of an Asked.
type AskedRequest struct {
	ID        string     `json:"id"`
	ToolName  string     `json:"toolName"`
	Arguments topics.Raw `json:"arguments"`
	Content   topics.Raw `json:"content,omitzero"`
	Timestamp string     `json:"timestamp"`
	view.Shown
}

// preview is what a dialog shows.
type preview struct {
	Icon    string `json:"icon"`
	Summary string `json:"summary,omitzero"`
	Args    string `json:"args"`
}

// Resolved is the event of a request that waits no more.
type Resolved struct {
	AgentID   string `json:"agentId"`
	RequestID string `json:"requestId"`
	Outcome   string `json:"outcome"`
	By        string `json:"by"`
}

// problem is the event of something that a person should know.
type problem struct {
	AgentID string `json:"agentId"`
	Message string `json:"message"`
}

// View returns the request as agents' rows show it.
func (a Asked) View() view.PermissionAsked {
	r := a.Request
	return view.PermissionAsked{
		ID: r.ID, ToolName: r.ToolName, Arguments: r.Arguments, Content: r.Content, Timestamp: r.Timestamp, Shown: r.Shown,
		ExpiresAt: a.ExpiresAt, Dangerous: a.Dangerous, Options: a.Options,
	}
}

func (r *Request) event(agentID string) Asked {
	v := r.view()
	return Asked{
		AgentID:   agentID,
		Request:   AskedRequest{ID: v.ID, ToolName: v.ToolName, Arguments: v.Arguments, Content: v.Content, Timestamp: v.Timestamp, Shown: v.Shown},
		Dangerous: v.Dangerous, ExpiresAt: v.ExpiresAt, Options: v.Options,
		Preview: preview{
			Icon: icon(v.ToolName), Summary: summary(v.Arguments, v.ToolName), Args: indented(v.Arguments),
		},
	}
}

func rawOf(value []byte) topics.Raw {
	if len(value) == 0 {
		return nil
	}
	return value
}

func (r *Request) view() view.PermissionAsked {
	return view.PermissionAsked{
		ID: r.GateId, ToolName: r.Name, Arguments: r.Arguments, Content: rawOf(r.Content), Timestamp: view.Time(r.AskedMs),
		Shown:     view.Shown{Truncated: r.Shortened, Bytes: r.ArgsBytes, ArgsSHA256: r.ArgsSha256},
		ExpiresAt: view.Time(r.ExpiresMs), Dangerous: r.Dangerous, Options: encodedOptions(r.Options),
	}
}
