package team

import "github.com/turntable-streams/turntable/processors/crew/view"

// Option sets a rule of Graph, which checks the values and returns an error that names the first option that is out of range.
type Option func(*Rules)

// WithRoles replaces the roles that agents can have (default: Roles). Their IDs differ. The first one is the
// lead's: only agents with it create agents, delegate and keep tasks. The role with the ID "secretary" is told all progress.
func WithRoles(roles []view.Role) Option {
	return func(r *Rules) { r.Roles = roles }
}

// WithMaxAgents sets how many agents of a crew may be creating, running or idle at a time (default 50; 1 to 100). The first
// CREATE_AGENT in a crew that is full raises the limit of that crew by 10, up to 100, once. A person can set another limit for a crew
// by confirming the decision of a REQUEST_LIMIT_CHANGE.
func WithMaxAgents(n int) Option {
	return func(r *Rules) { r.MaxAgents = n }
}
