package crewhttp

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

// agent returns the row of an agent; nil for an unknown one.
func (x *Index) agent(id string) *agentRow {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.agents[id]
}

// agentOf returns the row of an agent that a caller may use. If there is none, it looks for newer rows, also if the agent is of
// another crew: the time of an answer must not tell whether an agent exists. known is an agent of another crew.
func (x *Index) agentOf(ctx context.Context, c auth.Caller, id string) (row, known *agentRow, err error) {
	may := func() bool {
		known = x.agent(id)
		return known != nil && mayUse(c, known.view.CrewID)
	}
	if err = x.look(ctx, c, only(mailbox.Agent(id)), may); err == nil && may() {
		return known, nil, nil
	}
	return nil, known, err
}

// agent returns the agent that a request is about. An agent that the caller may not use is answered like one that does not
// exist.
func (h *Handler) agent(r *request, id string) (row *agentRow, rejection answer, ok bool) {
	row, known, err := h.index.agentOf(r.Context(), r.Caller, id)
	if known != nil {
		r.Refuse(&entrance.Refusal{Status: http.StatusForbidden, Text: "the agent is of a crew that the caller may not use"})
	}
	switch {
	case err != nil:
		return nil, notReady(), false
	case row == nil:
		return nil, entrance.Failed(http.StatusNotFound, "Unknown agent"), false
	}
	if refusal := r.Session(row.view.CrewID); refusal != nil {
		return nil, refusal.Answer(), false
	}
	return row, answer{}, true
}

// crew checks that a request may use a crew, which need not exist.
func (h *Handler) crew(r *request, id string) (rejection answer, ok bool) {
	if !usable(id) {
		return entrance.Failed(http.StatusBadRequest, "crewId is missing or is not usable"), false
	}
	if refusal := r.Session(id); refusal != nil {
		return refusal.Answer(), false
	}
	return answer{}, true
}

// namedCrew is a crew and its ID.
type namedCrew struct {
	id string
	crewRow
}

// crewsOf returns the crews that a caller may use, by ID: only one if id is not empty.
func (x *Index) crewsOf(c auth.Caller, id string) (crews []namedCrew) {
	x.mu.Lock()
	known := maps.Clone(x.crews)
	x.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if (id == "" || id == name) && mayUse(c, name) {
			crews = append(crews, namedCrew{name, known[name]})
		}
	}
	return crews
}

// wantedBy returns what a list for a caller has: what belongs to the crews that the caller may use and, unless they are empty,
// to a crew and a project.
func wantedBy(c auth.Caller, crew, project string) func(crew, project string) bool {
	seen := map[string]bool{}
	return func(ofCrew, ofProject string) bool {
		if crew != "" && crew != ofCrew || project != "" && project != ofProject {
			return false
		}
		may, known := seen[ofCrew]
		if !known {
			may = mayUse(c, ofCrew)
			seen[ofCrew] = may
		}
		return may
	}
}

// shownAgent returns an agent as clients see it.
func (x *Index) shownAgent(row *agentRow) view.Agent {
	a := row.shown()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.complete(&a, x.children()[a.ID])
	return a
}
