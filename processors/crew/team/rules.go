package team

import (
	"errors"
	"fmt"
	"slices"

	"github.com/turntable-streams/turntable/processors/crew/view"
)

// ErrOption is wrapped by every error of Graph about an option that is out of range.
var ErrOption = errors.New("team: option out of range")

// Rules are the settings of a transition.
type Rules struct {
	// Roles are what agents can be for; the first one is the lead's. Their IDs differ.
	Roles []view.Role
	// MaxAgents is how many agents of a crew may be creating, running or idle.
	MaxAgents int
}

// maxAgents bounds MaxAgents, and so the row.
const maxAgents = 100

// DefaultRules returns the defaults of all options.
func DefaultRules() Rules { return Rules{Roles: Roles(), MaxAgents: 50} }

func (r Rules) validate() error {
	if r.MaxAgents < 1 || r.MaxAgents > maxAgents {
		return fmt.Errorf("%w: maximum of agents %d, want 1 to %d", ErrOption, r.MaxAgents, maxAgents)
	}
	if len(r.Roles) == 0 {
		return fmt.Errorf("%w: no roles", ErrOption)
	}
	for i, role := range r.Roles {
		switch {
		case role.ID == "" || role.Name == "" || len(role.ID) > maxName || len(role.Name) > maxName:
			return fmt.Errorf("%w: role %d: its ID and name have 1 to %d bytes", ErrOption, i+1, maxName)
		case len(role.SystemPrompt) > maxRolePrompt:
			return fmt.Errorf("%w: role %q: its prompt is longer than %d bytes", ErrOption, role.ID, maxRolePrompt)
		case slices.ContainsFunc(r.Roles[:i], func(o view.Role) bool { return o.ID == role.ID }):
			return fmt.Errorf("%w: role %q is repeated", ErrOption, role.ID)
		}
	}
	return nil
}

// role returns the role with an ID.
func (r Rules) role(id string) (view.Role, bool) {
	i := slices.IndexFunc(r.Roles, func(role view.Role) bool { return role.ID == id })
	if i < 0 {
		return view.Role{}, false
	}
	return r.Roles[i], true
}
