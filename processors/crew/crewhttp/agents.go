package crewhttp

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/topics"
)

// listAgents answers with the agents that the caller may use: with crewId or projectId those of one.
func (h *Handler) listAgents(r *request) answer {
	q := r.URL.Query()
	wanted := wantedBy(r.Caller, q.Get("crewId"), q.Get("projectId"))
	h.index.prepare(wanted)
	h.index.mu.Lock()
	agents, left := h.index.shownAgents(wanted)
	h.index.mu.Unlock()
	a := entrance.OK(agents)
	if left {
		r.W.Header().Set("X-Incomplete", "true")
	}
	return a
}

func (h *Handler) getAgent(r *request) answer {
	row, rejection, ok := h.agent(r, r.Parts[0])
	if !ok {
		return rejection
	}
	a := row.shown()
	h.index.mu.Lock()
	defer h.index.mu.Unlock()
	h.index.complete(&a, h.index.children()[a.ID])
	return entrance.OK(a)
}

func (h *Handler) listRoles(*request) answer { return entrance.OK(h.config.Roles) }

// spawn asks for an agent. Members that do what other requests do with the right Control need that right here too: autopilot
// answers all permission requests, cwd leaves the directory that the crew is configured with, and sessionId continues a session
// as a restart does.
func (h *Handler) spawn(r *request) answer {
	b, err := read[struct {
		CrewID    string `json:"crewId"`
		RoleID    string `json:"roleId"`
		ParentID  string `json:"parentId"`
		Task      string `json:"task"`
		Context   string `json:"context"`
		Model     string `json:"model"`
		Provider  string `json:"provider"`
		Cwd       string `json:"cwd"`
		SessionID string `json:"sessionId"`
		Autopilot bool   `json:"autopilot"`
		NoRestart bool   `json:"noRestart"`
	}](r.Body)
	if err != nil {
		return badBody(err)
	}
	if rejection, ok := h.crew(r, b.CrewID); !ok {
		return rejection
	}
	known := slices.ContainsFunc(h.config.Roles, func(role topics.CrewRole) bool { return role.ID == b.RoleID })
	switch {
	case !known:
		return entrance.Failed(http.StatusBadRequest, "roleId is not the ID of a role")
	case len(b.Task)+len(b.Context) > maxText || len(b.Cwd) > maxPath || len(b.Model)+len(b.Provider)+len(b.SessionID) > 3*maxID ||
		b.ParentID != "" && !usable(b.ParentID):
		return badBody(errBody)
	}
	if (b.Autopilot || b.Cwd != "" || b.SessionID != "") && !r.Caller.Can(auth.Control) {
		return forbidden(r, "Forbidden: autopilot, cwd and sessionId need the right control")
	}
	id := h.inputID(r)
	if wait := h.spawns.take(r.Key(), h.config.Clock.Now()); wait > 0 {
		return tooMany("Too many agents: at most 30 per minute", wait)
	}
	agent := uuidOf(id)
	return h.sendFirst(r, mailbox.Agent(agent), b.CrewID, id, crewbody.SpawnAsked{
		AgentID: agent, RoleID: b.RoleID, ParentID: b.ParentID, Task: b.Task, Context: b.Context, Model: b.Model, Provider: b.Provider,
		Cwd: b.Cwd, SessionID: b.SessionID, Autopilot: b.Autopilot, NoRestart: b.NoRestart, By: nameOf(r.Caller),
	}, "id", agent, "agentId", agent, "crewId", b.CrewID)
}

// told writes an input about the agent of a request, to its crew or to the agent itself. A message is not for an agent that has ended,
// and counts against the caller's limit.
func (h *Handler) told(r *request, b crewbody.Body) answer {
	row, rejection, ok := h.agent(r, r.Parts[0])
	if !ok {
		return rejection
	}
	id := h.inputID(r)
	switch b.(type) {
	case crewbody.Prompt, crewbody.Say:
		if view.Ended(row.view.Status) {
			return entrance.Failed(http.StatusConflict, "The agent has ended")
		}
		if rejection, ok := h.mayWrite(r); !ok {
			return rejection
		}
	}
	to, key := h.topics.CrewAgentInputs, row.view.ID
	switch b.(type) {
	case crewbody.Say, crewbody.TerminateAsked, crewbody.RestartAsked:
		to, key = h.topics.CrewInputs, row.view.CrewID
	}
	return h.send(r, to, key, id, b, "agentId", row.view.ID)
}

func (h *Handler) terminate(r *request) answer {
	b, err := read[struct {
		Reason string `json:"reason"`
	}](r.Body)
	if err != nil || len(b.Reason) > maxText {
		return badBody(errBody)
	}
	return h.told(r, crewbody.TerminateAsked{AgentID: r.Parts[0], Reason: b.Reason, By: nameOf(r.Caller)})
}

func (h *Handler) restart(r *request) answer {
	if _, err := read[struct{}](r.Body); err != nil {
		return badBody(err)
	}
	return h.told(r, crewbody.RestartAsked{AgentID: r.Parts[0], By: nameOf(r.Caller)})
}

func (h *Handler) interrupt(r *request) answer {
	b, err := read[struct {
		Text string `json:"text"`
	}](r.Body)
	if err != nil || len(b.Text) > maxText {
		return badBody(errBody)
	}
	return h.told(r, crewbody.Interrupt{Text: b.Text, FromID: person})
}

// input gives an agent text as it is, before what else waits for it.
func (h *Handler) input(r *request) answer {
	b, err := read[struct {
		Text string `json:"text"`
	}](r.Body)
	if err != nil || strings.TrimSpace(b.Text) == "" || len(b.Text) > maxText {
		return badBody(errBody)
	}
	return h.told(r, crewbody.Prompt{Text: b.Text, Priority: true, FromID: person})
}

func (h *Handler) autopilot(r *request) answer {
	b, err := read[struct {
		On      *bool `json:"on"`
		Enabled *bool `json:"enabled"`
	}](r.Body)
	if err != nil || (b.On == nil) == (b.Enabled == nil) {
		return badBody(errBody)
	}
	return h.told(r, crewbody.Autopilot{On: *cmp.Or(b.On, b.Enabled)})
}

// mayWrite checks the caller's limit of messages.
func (h *Handler) mayWrite(r *request) (rejection answer, ok bool) {
	if wait := h.messages.take(r.Key(), h.config.Clock.Now()); wait > 0 {
		return tooMany("Too many messages: at most 50 per 10 seconds", wait), false
	}
	return answer{}, true
}
