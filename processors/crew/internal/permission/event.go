package permission

import (
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

// asked is the event of a request that waits for a person.
type asked struct {
	AgentID   string       `json:"agentId"`
	Request   askedRequest `json:"request"`
	Dangerous bool         `json:"dangerous"`
	ExpiresAt string       `json:"expiresAt"`
	Options   topics.Raw   `json:"options,omitzero"`
	Preview   preview      `json:"preview"`
}

type askedRequest struct {
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

// resolved is the event of a request that waits no more.
type resolved struct {
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

func (r *Request) event(agentID string) asked {
	v := r.view()
	return asked{
		AgentID:   agentID,
		Request:   askedRequest{ID: v.ID, ToolName: v.ToolName, Arguments: v.Arguments, Content: v.Content, Timestamp: v.Timestamp, Shown: v.Shown},
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
