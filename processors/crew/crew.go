package crew

import (
	"fmt"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/processors/crew/agent"
	"github.com/turntable-streams/turntable/processors/crew/repository"
	"github.com/turntable-streams/turntable/processors/crew/team"
	"github.com/turntable-streams/turntable/processors/crew/view"
)

// Option configures Graphs.
type Option func(*options)

type options struct {
	agents       []agent.Option
	teams        []team.Option
	repositories []repository.Option
}

// Graphs returns the three groups for processors.New: those of the agents, the crews and the repositories. name is that of the
// catalog (topics.For), with topics.WithCrews and topics.WithGates. They may run in one process or in several. It returns an
// error if the name is invalid or an option is out of range.
func Graphs(name string, opts ...Option) ([]*goka.GroupGraph, error) {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	agents, err := agent.Graph(name, o.agents...)
	if err != nil {
		return nil, fmt.Errorf("crew: %w", err)
	}
	teams, err := team.Graph(name, o.teams...)
	if err != nil {
		return nil, fmt.Errorf("crew: %w", err)
	}
	repositories, err := repository.Graph(name, o.repositories...)
	if err != nil {
		return nil, fmt.Errorf("crew: %w", err)
	}
	return []*goka.GroupGraph{agents, teams, repositories}, nil
}

// Roles are the roles that agents can have without WithRoles.
func Roles() []view.Role { return team.Roles() }

// WithRoles sets what agents can be. The first one is the lead's. Give the door the same roles.
func WithRoles(roles []view.Role) Option {
	return func(o *options) { o.teams = append(o.teams, team.WithRoles(roles)) }
}

// WithMaxAgents sets how many agents of a crew may be creating, running or idle. The default is 50.
func WithMaxAgents(n int) Option {
	return func(o *options) { o.teams = append(o.teams, team.WithMaxAgents(n)) }
}

// WithPermissionTimeout sets how long a permission request waits for a person before it is denied. The default is 60 s.
func WithPermissionTimeout(d time.Duration) Option {
	return func(o *options) { o.agents = append(o.agents, agent.WithPermissionTimeout(d)) }
}

// WithHungAfter sets how long an agent may be silent during a turn before agent:hung is written, once per silence. The default
// is 5 minutes.
func WithHungAfter(d time.Duration) Option {
	return func(o *options) { o.agents = append(o.agents, agent.WithHungAfter(d)) }
}

// WithRestartDelay sets how long a crashed agent waits before it is started again. The default is 2 s.
func WithRestartDelay(d time.Duration) Option {
	return func(o *options) { o.agents = append(o.agents, agent.WithRestartDelay(d)) }
}

// WithLockTTL sets how long a lock lasts after the last activity of its agent. The default is 5 minutes.
func WithLockTTL(d time.Duration) Option {
	return func(o *options) { o.repositories = append(o.repositories, repository.WithLockTTL(d)) }
}
