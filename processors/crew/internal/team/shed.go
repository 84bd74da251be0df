package team

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

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
	if i := slices.IndexFunc(w.Delegations, func(d *Delegation) bool { return d.Status != active }); i >= 0 {
		w.Delegations = slices.Delete(w.Delegations, i, i+1)
		return true
	}
	if i := slices.IndexFunc(w.Decisions, func(d *Decision) bool { return d.Status != recorded }); i >= 0 {
		w.Decisions = slices.Delete(w.Decisions, i, i+1)
		return true
	}
	i := slices.IndexFunc(w.Roster.Members, func(m *roster.Member) bool { return view.Ended(m.Status) && !w.working(m) })
	if i < 0 {
		return false
	}
	w.drop(w.Roster.Members[i])
	w.Roster.Members = slices.Delete(w.Roster.Members, i, i+1)
	return true
}
