package team

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/processors/crew/internal/manifest"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// errLimit is wrapped by the error of a spawn in a crew that is full.
var errLimit = errors.New("which is its limit")

// spawnAsked spawns the agent that a person asks for.
func (w *work) spawnAsked(in crewbody.SpawnAsked) {
	if _, err := w.spawn(in); err != nil {
		w.step.Event("agent:spawn_error", map[string]any{"agentId": kept(in.AgentID, maxID), "message": err.Error()})
	}
}

// spawn adds an agent to the crew and has its group start it. The error says why it cannot be.
func (w *work) spawn(in crewbody.SpawnAsked) (*roster.Member, error) {
	role, known := w.config.role(in.RoleID)
	parent := w.Roster.Find(in.ParentID)
	switch {
	case !w.Settings.Configured:
		return nil, errors.New("the crew has no host and no directory yet")
	case !validID(in.AgentID):
		return nil, errors.New("the agent's ID is not one: it has 8 to 64 characters of 0-9, a-f and -")
	case w.Roster.Find(in.AgentID) != nil:
		return nil, errors.New("an agent with this ID is in the crew already")
	case !known:
		return nil, fmt.Errorf("there is no role %q; the roles are %s", kept(in.RoleID, maxName), w.roleIDs())
	case in.ParentID != "" && parent == nil:
		return nil, errors.New("the parent is not in the crew")
	case parent != nil && (view.Ended(parent.Status) || !parent.Lead):
		return nil, errors.New("the parent has ended or is not a lead")
	case len(in.Model) > maxName || len(in.Provider) > maxName || len(in.Cwd) > maxPath || len(in.SessionID) > maxName:
		return nil, errors.New("the model, the provider, the directory or the session is too long")
	case len(w.unended()) >= w.limit():
		return nil, fmt.Errorf("the crew has %d agents, %w", w.limit(), errLimit)
	}
	m := &roster.Member{
		Id: in.AgentID, RoleId: role.ID, RoleName: role.Name, Model: cmp.Or(in.Model, role.Model), Provider: in.Provider, Status: view.Creating,
		Task: kept(in.Task, maxKept), ParentId: in.ParentID, SessionId: in.SessionID, CreatedMs: w.now(), Lead: role.ID == w.config.Roles[0].ID,
		Host: w.Settings.Host, Cwd: cmp.Or(in.Cwd, w.Settings.Cwd), Repository: w.Settings.Repository, Resuming: in.SessionID != "",
	}
	if parent != nil {
		m.Level = parent.Level + 1
	}
	w.Roster.Members = append(w.Roster.Members, m)
	prompt := w.prompt(m, in.Task, in.Context)
	d := w.duty(m)
	d.Autopilot, d.NoRestart, d.Context = in.Autopilot, in.NoRestart, kept(in.Context, maxKeptEnded)
	w.send(m.Id, crewbody.Spawn{
		Member: w.identity(m), Task: m.Task, ParentID: m.ParentId, Level: int(m.Level), Lead: m.Lead, Autopilot: in.Autopilot,
		SessionID: in.SessionID, Prompt: prompt, NoRestart: in.NoRestart,
	})
	sent := w.Mailbox.Sent
	if w.Settings.Paused {
		w.send(m.Id, crewbody.Pause{Paused: true})
	}
	w.joined(m)
	if parent != nil {
		w.subSpawned(parent, m, in, sent)
	}
	return m, nil
}

// subSpawned tells people about an agent with a parent. With a task, the parent has delegated it.
func (w *work) subSpawned(parent, m *roster.Member, in crewbody.SpawnAsked, sent int64) {
	w.say(m, parent, fmt.Sprintf("%s is ready for work as %s.", view.ShortID(m.Id), m.RoleName))
	if in.Task != "" {
		if d := w.delegate(parent, m, in.Task, in.Context); d != nil {
			d.Sent = sent
		}
	}
	w.step.Event("agent:sub_spawned", map[string]any{"parentId": parent.Id, "child": w.agent(m)})
	w.log(parent, "sub_agent_spawned", "Created "+m.Label(), nil)
}

func (w *work) roleIDs() string {
	ids := make([]string, len(w.config.Roles))
	for i, r := range w.config.Roles {
		ids[i] = r.ID
	}
	return strings.Join(ids, ", ")
}

// limit is how many agents the crew may have that have not ended.
func (w *work) limit() int {
	return cmp.Or(int(w.Settings.MaxAgents), w.config.MaxAgents)
}

// moreAgents is by how many agents a CREATE_AGENT raises the limit of a crew that is full.
const moreAgents = 10

// raiseLimit raises the limit of a crew for a lead, once in the life of the crew and not above maxAgents. It reports whether it did.
func (w *work) raiseLimit(lead *roster.Member) bool {
	limit := min(w.limit()+moreAgents, maxAgents)
	if w.Settings.LimitRaised || limit <= w.limit() {
		return false
	}
	w.Settings.MaxAgents, w.Settings.LimitRaised = int32(limit), true
	w.log(lead, "status_change", fmt.Sprintf("Raised the limit of agents to %d", limit), details{"limit": limit})
	return true
}

// newAgentID returns an ID for an agent whose beginning no other member's has.
func (w *work) newAgentID() string {
	for {
		d := digests.Of("crew-agent", w.step.NewID("agent"))
		h := hex.EncodeToString(d[:])
		id := h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
		if !slices.ContainsFunc(w.Roster.Members, func(m *roster.Member) bool { return view.ShortID(m.Id) == h[:8] }) {
			return id
		}
	}
}

// validID reports whether people and agents can mention an ID.
func validID(id string) bool {
	if len(id) < 8 || len(id) > 64 {
		return false
	}
	for i, c := range id {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c == '-' && i >= 8) {
			return false
		}
	}
	return true
}

// prompt is the first prompt of an agent: what its role is, who else is in the crew, and what it has to do.
func (w *work) prompt(m *roster.Member, task, context string) string {
	role, _ := w.config.role(m.RoleId)
	text := manifest.Initial(w.Roster, m, role.Description, w.limit()) + "\n\n"
	if role.SystemPrompt != "" {
		text += role.SystemPrompt + "\n\n"
	}
	if task == "" {
		return text + "You are the " + m.RoleName + ". You are awaiting a task."
	}
	text += "You are the " + m.RoleName + ". Your task: " + task
	if context != "" {
		text += "\n\nContext: " + context
	}
	return text
}
