package team

import (
	"fmt"
	"strings"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// shortestPrefix is the shortest beginning of an ID that names an agent.
const shortestPrefix = 4

// named returns the only one of a list of agents that an ID, or the beginning of one, is of. Agents that have not ended are
// meant first.
func named(list []*roster.Member, id string) (*roster.Member, error) {
	id = strings.TrimPrefix(strings.TrimSpace(id), "@")
	var live, ended []*roster.Member
	for _, m := range list {
		switch {
		case m.Id == id:
			return m, nil
		case len(id) < shortestPrefix || !strings.HasPrefix(m.Id, strings.ToLower(id)):
		case view.Ended(m.Status):
			ended = append(ended, m)
		default:
			live = append(live, m)
		}
	}
	if len(live) == 0 {
		live = ended
	}
	switch len(live) {
	case 0:
		return nil, fmt.Errorf("%q is none of your agents", truncate.Characters(id, shownID))
	case 1:
		return live[0], nil
	default:
		return nil, fmt.Errorf("%q is the beginning of several of your agents' IDs", truncate.Characters(id, shownID))
	}
}

// shownID is how many characters of an ID that names no one are repeated.
const shownID = 40

// child returns the agent of a lead that an ID is of, if it has not ended.
func (w *work) child(lead *roster.Member, id string) (*roster.Member, error) {
	m, err := named(w.Roster.Children(lead.Id), id)
	if err == nil && view.Ended(m.Status) {
		return nil, fmt.Errorf("%s has ended", m.Label())
	}
	return m, err
}

// descendants returns the agents below a lead.
func (w *work) descendants(lead *roster.Member) (list []*roster.Member) {
	for _, m := range w.Roster.Members {
		if w.Roster.Descends(m.Id, lead.Id) {
			list = append(list, m)
		}
	}
	return list
}
