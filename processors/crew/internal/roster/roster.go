// Package roster knows who is in a crew and who is meant by a name. Its functions are pure.
package roster

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// Errors of Resolve.
var (
	ErrUnknown   = errors.New("no agent of the crew is called so")
	ErrAmbiguous = errors.New("more than one agent of the crew is called so")
)

// Find returns the member with an ID, nil if there is none.
func (r *Roster) Find(id string) *Member {
	for _, m := range r.GetMembers() {
		if m.Id == id {
			return m
		}
	}
	return nil
}

// Live returns the members to whom messages are delivered.
func (r *Roster) Live() []*Member {
	return slices.DeleteFunc(slices.Clone(r.GetMembers()), func(m *Member) bool { return !view.Live(m.Status) })
}

// Children returns the members whose parent has an ID.
func (r *Roster) Children(parent string) []*Member {
	return slices.DeleteFunc(slices.Clone(r.GetMembers()), func(m *Member) bool { return m.ParentId != parent || parent == "" })
}

// Descends reports whether a member is a child of an ancestor, or a child's child.
func (r *Roster) Descends(id, ancestor string) bool {
	for seen := map[string]bool{}; !seen[id]; {
		seen[id] = true
		m := r.Find(id)
		if m == nil || m.ParentId == "" {
			return false
		}
		if m.ParentId == ancestor {
			return true
		}
		id = m.ParentId
	}
	return false
}

// LeadOf returns the ID of the lead in whose name a member acts: its own if it leads, else its parent's.
func (r *Roster) LeadOf(m *Member) string {
	if m.Lead {
		return m.Id
	}
	return m.ParentId
}

// Resolve returns the member that another one means by a name: an exact ID of any status, else among the live members other
// than the sender the beginning of an ID, a role's ID, a role's name, or a part of either, without regard to case. A name that
// fits several members of the first rule that fits any is ambiguous, except a role, whose first member is meant.
func (r *Roster) Resolve(name, sender string) (*Member, error) {
	if m := r.Find(name); m != nil {
		return m, nil
	}
	lower := strings.ToLower(strings.TrimPrefix(strings.TrimSpace(name), "@"))
	if lower == "" {
		return nil, fmt.Errorf("%w: %q", ErrUnknown, name)
	}
	rules := []func(*Member) bool{
		func(m *Member) bool { return strings.HasPrefix(m.Id, lower) },
		func(m *Member) bool { return strings.ToLower(m.RoleId) == lower },
		func(m *Member) bool { return strings.ToLower(m.RoleName) == lower },
		func(m *Member) bool {
			return strings.Contains(strings.ToLower(m.RoleId), lower) || strings.Contains(strings.ToLower(m.RoleName), lower)
		},
	}
	for i, fits := range rules {
		var found []*Member
		for _, m := range r.Live() {
			if m.Id != sender && fits(m) {
				found = append(found, m)
			}
		}
		switch {
		case len(found) == 0:
		case len(found) > 1 && i == 0:
			return nil, fmt.Errorf("%w: %q", ErrAmbiguous, name)
		default:
			return found[0], nil
		}
	}
	return nil, fmt.Errorf("%w: %q", ErrUnknown, name)
}

// Label is a member for people and agents, such as "Developer (a1b2c3d4)".
func (m *Member) Label() string { return m.RoleName + " (" + view.ShortID(m.Id) + ")" }

// LocksOf returns the paths that a member has locked.
func (r *Roster) LocksOf(id string) (paths []string) {
	for _, l := range r.GetLocks() {
		if l.AgentId == id {
			paths = append(paths, l.Path)
		}
	}
	return paths
}
