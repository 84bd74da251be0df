package crewhttp

import (
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

// maxAsked is how many permission requests the index remembers from their events.
const maxAsked = 2000

// asked is a permission request from its event. At least once, a row is written after its events, so a person can answer before
// the index has the row.
type asked struct {
	agent string
	view.PermissionAsked
}

// askedOf reads the event of a permission request; nil if it cannot be read.
func askedOf(fields topics.Raw) *asked {
	var e struct {
		AgentID string `json:"agentId"`
		Request struct {
			ID        string     `json:"id"`
			ToolName  string     `json:"toolName"`
			Arguments topics.Raw `json:"arguments"`
			Content   topics.Raw `json:"content"`
			Timestamp string     `json:"timestamp"`
			view.Shown
		} `json:"request"`
		Dangerous bool       `json:"dangerous"`
		ExpiresAt string     `json:"expiresAt"`
		Options   topics.Raw `json:"options"`
	}
	if json.Unmarshal(fields, &e, lenient) != nil || e.Request.ID == "" {
		return nil
	}
	return &asked{e.AgentID, view.PermissionAsked{
		ID: e.Request.ID, ToolName: e.Request.ToolName, Arguments: e.Request.Arguments, Content: e.Request.Content,
		Timestamp: e.Request.Timestamp, Shown: e.Request.Shown,
		ExpiresAt: e.ExpiresAt, Dangerous: e.Dangerous, Options: e.Options,
	}}
}

// note remembers what an event says about permission requests and messages. The caller holds the lock.
func (x *Index) note(e *event) {
	switch {
	case e.message != nil:
		x.bus.add(x.crewOf(e), *e.message)
	case e.resolved != nil:
		x.outcomes.add(*e.resolved)
		x.asked = slices.DeleteFunc(x.asked, func(a *asked) bool { return a.ID == e.resolved.RequestID })
	case e.asked != nil:
		if x.asked = append(x.asked, e.asked); len(x.asked) > maxAsked {
			x.asked = slices.Delete(x.asked, 0, 1)
		}
	}
}

// open returns the permission requests of an agent that are open as far as the index knows, from its row and its events.
func (x *Index) open(agent string) (open []view.PermissionAsked) {
	x.mu.Lock()
	defer x.mu.Unlock()
	add := func(p view.PermissionAsked) {
		_, ended := x.outcomes.byID[p.ID]
		if !ended && !slices.ContainsFunc(open, func(o view.PermissionAsked) bool { return o.ID == p.ID }) {
			open = append(open, p)
		}
	}
	if row := x.agents[agent]; row != nil {
		for _, p := range row.view.Permissions {
			add(p)
		}
	}
	for _, a := range x.asked {
		if a.agent == agent {
			add(a.PermissionAsked)
		}
	}
	return open
}

// askedBy returns the open permission request of an agent with an ID.
func (x *Index) askedBy(agent, id string) (view.PermissionAsked, bool) {
	open := x.open(agent)
	i := slices.IndexFunc(open, func(p view.PermissionAsked) bool { return p.ID == id })
	if i < 0 {
		return view.PermissionAsked{}, false
	}
	return open[i], true
}
