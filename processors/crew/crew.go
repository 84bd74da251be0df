package crew

import (
	"fmt"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/crew/internal/agent"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/repository"
	"github.com/turntable-streams/turntable/processors/crew/internal/team"
	"github.com/turntable-streams/turntable/topics"
)

// ErrConfig is wrapped by the errors of Graphs about a Config. They name each field that is out of its bounds.
var ErrConfig = mailbox.ErrConfig

// Config configures Graphs. Fields that are zero have their defaults.
type Config struct {
	// Roles are what agents can be (default: those of the function Roles). Their IDs differ. The first one is the lead's: only agents
	// with it create agents, delegate and keep tasks. The role with the ID "secretary" is told all progress. Give the door the same
	// roles.
	Roles []topics.CrewRole
	// MaxAgents is how many agents of a crew may be creating, running or idle at a time (default 50, 1 to 100). The first
	// CREATE_AGENT in a crew that is full raises the limit of that crew by 10, up to 100, once. A person can set another limit for a
	// crew by confirming the decision of a REQUEST_LIMIT_CHANGE.
	MaxAgents int
	// PermissionTimeout is how long a person may take to answer a permission request (default 1 minute, at least 1 ms). After that
	// it is denied.
	PermissionTimeout time.Duration
	// HungAfter is how long an agent may be silent during a turn until agent:hung is written, once per silence (default 5 minutes,
	// at least 1 ms). Nothing else happens then. The time in which a person is asked for a permission does not count.
	HungAfter time.Duration
	// RestartDelay is how long a crashed agent waits until it is started again (default 2 s, at least 1 ms).
	RestartDelay time.Duration
	// LockTTL is how long a lock lasts without a sign of its agent (default 5 minutes, 1 s to 24 hours). Agents give one at most once
	// a minute, so a shorter time than some minutes lets the locks of working agents expire.
	LockTTL time.Duration
}

// Graphs returns the three groups for processors.New: those of the agents, the crews and the repositories. name is that of the
// catalog (topics.For), with topics.WithCrews and topics.WithGates. They may run in one process or in several. It returns an
// error if the name is invalid, or one that wraps ErrConfig.
func Graphs(name string, c Config) ([]*goka.GroupGraph, error) {
	g, err := groupsOf(name, c)
	if err != nil {
		return nil, err
	}
	return []*goka.GroupGraph{g.agents.Graph(), g.crews.Graph(), g.repositories.Graph()}, nil
}

// Verify checks that the inputs of a key, all of them in the order of their offsets, make its row in the table of one of the groups.
// row is the value in the table's topic, nil for none. It returns the events that the inputs make, which are those in crew-events.
// Give it the Config of Graphs. The error names the fields that differ, without their values. Tests that kill processes use it.
func Verify(name string, c Config, group goka.Group, key string, row []byte, inputs []processors.Inbound) ([]topics.CrewEvent, error) {
	g, err := groupsOf(name, c)
	if err != nil {
		return nil, err
	}
	switch group {
	case g.agents.Name:
		return g.agents.Verify(key, row, inputs)
	case g.crews.Name:
		return g.crews.Verify(key, row, inputs)
	case g.repositories.Name:
		return g.repositories.Verify(key, row, inputs)
	}
	return nil, fmt.Errorf("crew: %q is not a group of crews", group)
}

type groups struct {
	agents       mailbox.Group[*agent.State]
	crews        mailbox.Group[*team.State]
	repositories mailbox.Group[*repository.State]
}

func groupsOf(name string, c Config) (g groups, err error) {
	g.agents, err = agent.Group(name, agent.Config{
		PermissionTimeout: c.PermissionTimeout, HungAfter: c.HungAfter, RestartDelay: c.RestartDelay,
	})
	if err != nil {
		return g, fmt.Errorf("crew agents: %w", err)
	}
	if g.crews, err = team.Group(name, team.Config{Roles: c.Roles, MaxAgents: c.MaxAgents}); err != nil {
		return g, fmt.Errorf("crews: %w", err)
	}
	if g.repositories, err = repository.Group(name, repository.Config{LockTTL: c.LockTTL}); err != nil {
		return g, fmt.Errorf("crew repositories: %w", err)
	}
	return g, nil
}

// Roles are the roles that agents can have unless Config.Roles names others. The result is new with every call.
func Roles() []topics.CrewRole { return team.Roles() }
