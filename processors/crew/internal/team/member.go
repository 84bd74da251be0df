package team

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// forgetAfter is how long an agent that has ended is a member.
const forgetAfter = 7 * 24 * time.Hour

// duty returns what the crew knows about a member.
func (w *work) duty(m *roster.Member) *Duty {
	i := slices.IndexFunc(w.Duties, func(d *Duty) bool { return d.AgentId == m.Id })
	if i < 0 {
		w.Duties = append(w.Duties, &Duty{AgentId: m.Id})
		i = len(w.Duties) - 1
	}
	return w.Duties[i]
}

// unended returns the members that have not ended.
func (w *work) unended() []*roster.Member {
	return slices.DeleteFunc(slices.Clone(w.Roster.Members), func(m *roster.Member) bool { return view.Ended(m.Status) })
}

// identity is a member as the other groups know it.
func (w *work) identity(m *roster.Member) crewbody.Member {
	return crewbody.Member{
		AgentID: m.Id, CrewID: w.id, ProjectID: w.Roster.ProjectId, RoleID: m.RoleId, RoleName: m.RoleName, Model: m.Model,
		Provider: m.Provider, Host: m.Host, Cwd: m.Cwd, Repository: m.Repository,
	}
}

// forget removes members that ended long ago, and the oldest ended ones if there are too many. One that ended with work left
// waits for the report about it.
func (w *work) forget() {
	ended := 0
	for _, m := range w.Roster.Members {
		if view.Ended(m.Status) {
			ended++
		}
	}
	w.Roster.Members = slices.DeleteFunc(w.Roster.Members, func(m *roster.Member) bool {
		old := m.EndedMs+forgetAfter.Milliseconds() <= w.now()
		if !view.Ended(m.Status) || !old && ended <= maxEndedMembers || w.working(m) {
			return false
		}
		ended--
		w.drop(m)
		return true
	})
}

// drop forgets what the crew knows about a member beside the roster.
func (w *work) drop(m *roster.Member) {
	w.Duties = slices.DeleteFunc(w.Duties, func(d *Duty) bool { return d.AgentId == m.Id })
	w.Timers = slices.DeleteFunc(w.Timers, func(t *Timer) bool { return t.AgentId == m.Id })
	w.step.Forget(mailbox.Agent(m.Id))
}

// working reports whether an agent has a delegation that has not ended.
func (w *work) working(m *roster.Member) bool {
	return slices.ContainsFunc(w.Delegations, func(d *Delegation) bool { return d.ToId == m.Id && d.Status == active })
}

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
func (w *work) descendants(lead *roster.Member) []*roster.Member {
	return slices.DeleteFunc(slices.Clone(w.Roster.Members), func(m *roster.Member) bool { return !w.Roster.Descends(m.Id, lead.Id) })
}

// Bounds of what a row keeps, in bytes unless they count. Agents get texts in full: only the row's copies are cut.
const (
	maxID         = 128
	maxName       = 200
	maxPath       = 512
	maxRolePrompt = 64 << 10
	maxKept       = 400 // of a text that a row keeps
	maxKeptEnded  = 200 // of the task of an agent that has ended
	maxShown      = 16_000

	maxEndedMembers = 50 // agents that have ended
	maxDelegations  = 100
	maxDecisions    = 40
	maxTasks        = 200
	maxTaskBytes    = 48 << 10 // of all tasks
	maxActivities   = 200
	maxHolds        = 50
	maxAgentTimers  = 20
	maxTimerBytes   = 24 << 10 // of all timers
	maxLockBytes    = 16 << 10 // of all locks that the crew shows
)

// kept is a text as a row keeps it.
func kept(text string, max int) string { return truncate.Text(text, max) }

// shown is a text as people see it in an event.
func shown(text string) string { return truncate.Marked(text, maxShown) }

// size returns the encoded size of messages.
func size[M proto.Message](list []M) (n int) {
	for _, m := range list {
		n += proto.Size(m) + 4
	}
	return n
}

const (
	// rowTarget is the size of a row, in bytes, from which on it loses what is over. The lists have bounds of their own: a row
	// comes near the target only if texts of the largest size fill all of them.
	rowTarget = 384 << 10
	// fewActivities is how many activities a row keeps at any rate.
	fewActivities = 20
)

// shed makes a row that is too large smaller.
func (w *work) shed() {
	for proto.Size(w.State) > rowTarget && w.shedOne() {
	}
}

// shedOne drops the least useful of what is over, and reports whether there was anything.
func (w *work) shedOne() bool {
	if n := len(w.Activities); n > fewActivities {
		w.Activities = slices.Clone(w.Activities[n-max(n/2, fewActivities):])
		return true
	}
	return evict(&w.Delegations, (*Delegation).over) || evict(&w.Decisions, (*Decision).resolved) ||
		evict(&w.Roster.Members, func(m *roster.Member) bool {
			over := view.Ended(m.Status) && !w.working(m)
			if over {
				w.drop(m)
			}
			return over
		})
}

// evict removes the first of a list that is over, and reports whether there was one.
func evict[T any](list *[]T, over func(T) bool) bool {
	i := slices.IndexFunc(*list, over)
	if i >= 0 {
		*list = slices.Delete(*list, i, i+1)
	}
	return i >= 0
}
