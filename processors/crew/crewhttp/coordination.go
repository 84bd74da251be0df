package crewhttp

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/repository"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/topics"
)

// lock asks for a lock in the name of an agent.
func (h *Handler) lock(r *request) answer {
	b, err := read[struct {
		AgentID  string `json:"agentId"`
		FilePath string `json:"filePath"`
		Reason   string `json:"reason"`
		TTLMS    int64  `json:"ttlMs"`
	}](r.Body)
	if err != nil || !usable(b.AgentID) || b.FilePath == "" || len(b.FilePath) > maxPath || len(b.Reason) > maxPath || b.TTLMS < 0 {
		return badBody(errBody)
	}
	if _, err := repository.Path(b.FilePath); err != nil {
		return badBody(err)
	}
	row, rejection, ok := h.agent(r, b.AgentID)
	switch {
	case !ok:
		return rejection
	case row.member.Repository == "":
		return entrance.Failed(http.StatusConflict, "The agent has no repository")
	case view.Ended(row.view.Status):
		return entrance.Failed(http.StatusConflict, "The agent has ended")
	}
	id := h.inputID(r)
	return h.send(r, h.topics.CrewRepositoryInputs, row.member.Repository, id, crewbody.LockAsked{
		Member: row.member, FilePath: b.FilePath, Reason: b.Reason, TTLMS: b.TTLMS, By: nameOf(r.Caller),
	}, "agentId", b.AgentID, "filePath", b.FilePath)
}

// unlock releases a lock. Without agentId, it is that of the agent that holds it.
func (h *Handler) unlock(r *request) answer {
	b, err := read[struct {
		AgentID    string `json:"agentId"`
		Repository string `json:"repository"`
		Force      bool   `json:"force"`
	}](r.Body)
	if err != nil {
		return badBody(err)
	}
	q := r.URL.Query()
	b.AgentID = cmp.Or(q.Get("agentId"), b.AgentID)
	b.Repository = cmp.Or(q.Get("repository"), b.Repository)
	b.Force = b.Force || q.Get("force") == "true"
	path := r.Parts[0]
	if _, err := repository.Path(path); err != nil {
		return badBody(err)
	}
	if b.AgentID == "" {
		var locks []view.FileLock
		of := ofRepositories
		if b.Repository != "" {
			of = only(mailbox.Repository(b.Repository))
		}
		err := h.index.lookNewest(r.Context(), r.Caller, of, func() bool {
			locks = h.index.locksOf(r.Caller, path, b.Repository)
			return len(locks) > 0
		})
		switch {
		case err != nil:
			return notReady()
		case len(locks) == 0:
			return entrance.Failed(http.StatusNotFound, "Unknown lock")
		case len(locks) > 1:
			return entrance.Failed(http.StatusConflict, "The path is locked in more than one repository: name repository or agentId")
		}
		b.AgentID, b.Repository = locks[0].AgentID, locks[0].Repository
	}
	row, rejection, ok := h.agent(r, b.AgentID)
	switch {
	case !ok:
		return rejection
	case row.member.Repository == "" || b.Repository != "" && b.Repository != row.member.Repository:
		return entrance.Failed(http.StatusNotFound, "Unknown lock")
	}
	id := h.inputID(r)
	return h.send(r, h.topics.CrewRepositoryInputs, row.member.Repository, id, crewbody.UnlockAsked{
		AgentID: b.AgentID, FilePath: path, Force: b.Force, By: nameOf(r.Caller),
	}, "agentId", b.AgentID, "filePath", path)
}

// locksOf returns the locks of a path that a caller may see: only that in a repository unless repository is empty.
func (x *Index) locksOf(c auth.Caller, path, repository string) []view.FileLock {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.DeleteFunc(x.shownLocks(wantedBy(c, "", "")), func(l view.FileLock) bool {
		return l.FilePath != path || repository != "" && repository != l.Repository
	})
}

// configure says where a crew works.
func (h *Handler) configure(r *request) answer {
	b, err := read[struct {
		CrewID      string `json:"crewId"`
		ProjectID   string `json:"projectId"`
		ProjectName string `json:"projectName"`
		Host        string `json:"host"`
		Cwd         string `json:"cwd"`
		Repository  string `json:"repository"`
	}](r.Body)
	if err != nil || !usable(b.Host) || b.Cwd == "" || len(b.Cwd) > maxPath || b.Repository != "" && !usable(b.Repository) ||
		b.ProjectID != "" && !usable(b.ProjectID) || len(b.ProjectName) > maxID {
		return badBody(errBody)
	}
	id := h.inputID(r)
	b.CrewID = cmp.Or(b.CrewID, uuidOf(id))
	if rejection, ok := h.crew(r, b.CrewID); !ok {
		return rejection
	}
	return h.sendFirst(r, mailbox.Crew(b.CrewID), b.CrewID, id, crewbody.Configure{
		ProjectID: b.ProjectID, ProjectName: b.ProjectName, Host: b.Host, Cwd: b.Cwd, Repository: b.Repository,
	}, "crewId", b.CrewID)
}

// pause pauses or resumes the agents of the crews that the caller may use, or of one.
func (h *Handler) pause(r *request) answer {
	b, err := read[struct {
		CrewID string `json:"crewId"`
	}](r.Body)
	if err != nil {
		return badBody(err)
	}
	paused := strings.HasSuffix(r.URL.Path, "/pause")
	if err := h.index.catchUpRows(r.Context()); err != nil {
		return notReady()
	}
	id := h.inputID(r)
	crews := h.index.crewsOf(r.Caller, b.CrewID)
	if b.CrewID != "" && len(crews) == 0 {
		return entrance.Failed(http.StatusNotFound, "Unknown crew")
	}
	ids, bodies := []string{}, map[string]crewbody.Body{}
	for _, c := range crews {
		ids, bodies[c.id] = append(ids, c.id), crewbody.SystemPaused{Paused: paused, By: nameOf(r.Caller)}
	}
	if rejection, ok := h.sendToCrews(r, b.CrewID, id, bodies); !ok {
		return rejection
	}
	return accepted("paused", paused, "crewIds", ids, "inputId", id)
}

// grant gives a standing approval of a tool to the agents of a role. DELETE ends it.
func (h *Handler) grant(r *request) answer {
	b, err := read[struct {
		RoleID string `json:"roleId"`
	}](r.Body)
	if err != nil {
		return badBody(err)
	}
	b.RoleID = cmp.Or(r.URL.Query().Get("roleId"), b.RoleID)
	tool := r.Parts[0]
	switch {
	case !governs(r.Caller):
		return forbidden(r, "Forbidden: an approval for all agents of a role needs the right to control all crews")
	case !usable(b.RoleID) || !usable(tool):
		return badBody(errBody)
	}
	g := topics.GateGrant{
		Action: topics.ActionRevoke, GrantID: derived("tool auto allow", h.topics.Agent, b.RoleID, tool), Agent: b.RoleID, By: nameOf(r.Caller),
	}
	did := auth.AuditRevoke
	if r.Method != http.MethodDelete {
		g.Action, g.Tool, did = topics.ActionGrant, tool, auth.AuditWrite
	}
	id := h.inputID(r)
	out, err := processors.OutboundOf(h.topics.GateGrants, b.RoleID, g, id)
	if rejection, ok := h.put(r, err, out); !ok {
		return rejection
	}
	r.Record(did, "", g.GrantID, http.StatusAccepted)
	return accepted("grantId", g.GrantID, "roleId", b.RoleID, "tool", tool)
}
