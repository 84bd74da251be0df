package crewhttp

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"

	"github.com/turntable-streams/turntable/processors/crew/internal/team"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

const (
	defaultPage = 100
	maxPage     = 5000
)

func badLimit() answer {
	return entrance.Failed(http.StatusBadRequest, "limit is not a positive number")
}

// query are the parameters of a list.
type query struct{ url.Values }

// is reports whether a value is the one that a parameter asks for, if it does.
func (q query) is(parameter, value string) bool {
	return q.Get(parameter) == "" || q.Get(parameter) == value
}

// crewsWanted returns the crews that a list is about: those of crewId and projectId, which are optional.
func (h *Handler) crewsWanted(r *request) []namedCrew {
	q := query{r.URL.Query()}
	return slices.DeleteFunc(h.index.crewsOf(r.Caller, q.Get("crewId")), func(c namedCrew) bool {
		return !q.is("projectId", c.GetRoster().GetProjectId())
	})
}

// gather returns what the wanted crews have, in the order of the crews, as far as it is wanted.
func gather[T any](h *Handler, r *request, of func(*team.State) []T, wanted func(T) bool) []T {
	all := []T{}
	for _, c := range h.crewsWanted(r) {
		for _, v := range of(c.State) {
			if wanted(v) {
				all = append(all, v)
			}
		}
	}
	return all
}

// shown answers with a list whose texts have no secrets.
func shown[T any](all []T, texts func(*T) []*string) answer {
	for i := range all {
		for _, text := range texts(&all[i]) {
			*text = Redact(*text)
		}
	}
	return entrance.OK(all)
}

// crewView is a crew in the answers of the door.
type crewView struct {
	ID           string `json:"id"`
	ProjectID    string `json:"projectId,omitzero"`
	ProjectName  string `json:"projectName,omitzero"`
	SystemPaused bool   `json:"systemPaused"`
}

func (h *Handler) listCrews(r *request) answer {
	crews := []crewView{}
	for _, c := range h.crewsWanted(r) {
		crews = append(crews, crewView{c.id, c.GetRoster().GetProjectId(), c.GetRoster().GetProjectName(), c.GetSettings().GetPaused()})
	}
	return entrance.OK(crews)
}

func (h *Handler) listLocks(r *request) answer {
	q := r.URL.Query()
	h.index.mu.Lock()
	defer h.index.mu.Unlock()
	return entrance.OK(h.index.shownLocks(wantedBy(r.Caller, q.Get("crewId"), q.Get("projectId"))))
}

// listActivity answers with the newest activities, newest first.
func (h *Handler) listActivity(r *request) answer {
	limit, ok := r.Limit(defaultPage, maxPage)
	if !ok {
		return badLimit()
	}
	q := query{r.URL.Query()}
	all := gather(h, r, team.Activities, func(a view.Activity) bool { return q.is("agentId", a.AgentID) && q.is("type", a.ActionType) })
	slices.SortStableFunc(all, func(a, b view.Activity) int {
		return cmp.Or(cmp.Compare(b.Timestamp, a.Timestamp), cmp.Compare(b.ID, a.ID))
	})
	all = all[:min(limit, len(all))]
	for i := range all {
		all[i].Details = redactJSON(all[i].Details)
	}
	return shown(all, func(a *view.Activity) []*string { return []*string{&a.Summary} })
}

// listDecisions answers with decisions, newest first.
func (h *Handler) listDecisions(r *request) answer {
	q := query{r.URL.Query()}
	all := gather(h, r, team.Decisions, func(d view.Decision) bool {
		return q.is("agentId", d.AgentID) && q.is("status", d.Status) && (q.Get("needsConfirmation") != "true" || d.NeedsConfirmation)
	})
	slices.SortStableFunc(all, func(a, b view.Decision) int { return cmp.Compare(b.Timestamp, a.Timestamp) })
	return shown(all, func(d *view.Decision) []*string { return []*string{&d.Title, &d.Rationale} })
}

func (h *Handler) listGroups(r *request) answer {
	q := query{r.URL.Query()}
	return entrance.OK(gather(h, r, func(s *team.State) []view.Group { return s.GetTalk().Groups() }, func(g view.Group) bool {
		member := q.Get("agentId")
		return q.is("leadId", g.LeadID) && (member == "" || slices.Contains(g.MemberIDs, member))
	}))
}

// listGroupMessages answers with the last messages of the groups with a name, oldest first.
func (h *Handler) listGroupMessages(r *request) answer {
	limit, ok := r.Limit(defaultPage, maxPage)
	if !ok {
		return badLimit()
	}
	q := query{r.URL.Query()}
	all := gather(h, r, func(s *team.State) []view.GroupMessage { return s.GetTalk().Messages(r.Parts[0]) },
		func(m view.GroupMessage) bool { return q.is("leadId", m.LeadID) })
	slices.SortStableFunc(all, func(a, b view.GroupMessage) int { return cmp.Compare(a.Timestamp, b.Timestamp) })
	return shown(all[max(0, len(all)-limit):], func(m *view.GroupMessage) []*string { return []*string{&m.Content} })
}

// listBus answers with the last messages between agents, oldest first: with agentId those from it, to it and to all.
func (h *Handler) listBus(r *request) answer {
	limit, ok := r.Limit(defaultPage, maxPage)
	if !ok {
		return badLimit()
	}
	q := r.URL.Query()
	h.index.mu.Lock()
	all := h.index.bus.query(q.Get("agentId"), limit, wantedBy(r.Caller, q.Get("crewId"), ""))
	h.index.mu.Unlock()
	return shown(all, func(m *view.BusMessage) []*string { return []*string{&m.Content} })
}

// listDelegations answers with delegations: with agentId those from it and to it.
func (h *Handler) listDelegations(r *request) answer {
	q := query{r.URL.Query()}
	all := gather(h, r, team.Delegations, func(d view.Delegation) bool {
		return (q.is("agentId", d.FromAgentID) || q.is("agentId", d.ToAgentID)) && q.is("status", d.Status)
	})
	return shown(all, func(d *view.Delegation) []*string { return []*string{&d.Task, &d.Context, &d.Result} })
}

// listTasks answers with the tasks of leads.
func (h *Handler) listTasks(r *request) answer {
	q := query{r.URL.Query()}
	all := gather(h, r, team.Tasks, func(t view.Task) bool { return q.is("leadId", t.LeadID) && q.is("status", t.DagStatus) })
	return shown(all, func(t *view.Task) []*string { return []*string{&t.Title, &t.Description, &t.FailureReason} })
}

const (
	// busLimit is how many messages the index keeps: the newest.
	busLimit = 5000
	// busByteLimit bounds the texts of these messages, in bytes. The newest message is kept at any size.
	busByteLimit = 32 << 20
)

// everyone is the receiver of a message to all agents.
const everyone = "*"

// newestMessages are the newest messages between the agents of all crews, in the order in which the index saw them. The zero value is
// empty. It is not safe for concurrent use.
type newestMessages struct {
	messages []crewMessage
	bytes    int
}

type crewMessage struct {
	crew string
	view.BusMessage
}

// add adds a message. It does not look for repeats: the caller knows them by the numbers of their events.
func (h *newestMessages) add(crew string, m view.BusMessage) {
	h.messages = append(h.messages, crewMessage{crew, m})
	h.bytes += len(m.Content)
	for len(h.messages) > busLimit || len(h.messages) > 1 && h.bytes > busByteLimit {
		h.bytes -= len(h.messages[0].Content)
		h.messages[0] = crewMessage{}
		h.messages = h.messages[1:]
	}
}

// query returns the newest n messages of the crews that are wanted, oldest first: those from an agent, to it and to all, or all
// of them without an agent. An ID that no agent has gets the messages to all agents.
func (h *newestMessages) query(agentID string, n int, wanted func(crew, project string) bool) []view.BusMessage {
	found := []view.BusMessage{}
	for _, m := range slices.Backward(h.messages) {
		if len(found) == n {
			break
		}
		concerns := agentID == "" || m.From == agentID || m.To == agentID || m.To == everyone
		if concerns && wanted(m.crew, "") {
			found = append(found, m.BusMessage)
		}
	}
	slices.Reverse(found)
	return found
}
