package team

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

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
