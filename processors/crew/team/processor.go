package team

import (
	"fmt"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/topics"
)

// Graph returns the group "{name}-crews" for processors.New: crews, in one row each. name is the agent's name in the catalog
// of topics, such as "harbor". The error wraps ErrOption if an option is out of range.
func Graph(name string, opts ...Option) (*goka.GroupGraph, error) {
	g, err := groupOf(name, opts)
	if err != nil {
		return nil, err
	}
	return g.Graph(), nil
}

func groupOf(name string, opts []Option) (g mailbox.Group[*State], err error) {
	catalog, err := topics.For(name)
	if err != nil {
		return g, fmt.Errorf("team: %w", err)
	}
	rules := DefaultRules()
	for _, opt := range opts {
		opt(&rules)
	}
	if err := rules.validate(); err != nil {
		return g, err
	}
	return group(catalog, rules), nil
}

func group(catalog topics.Catalog, rules Rules) mailbox.Group[*State] {
	return mailbox.Group[*State]{
		Topics: catalog, Name: catalog.CrewsGroup(), Input: catalog.CrewInputs, Kind: mailbox.OfCrew, Table: Table,
		New: newState, Apply: rules.apply,
		SetDeadline: func(s *State, ms int64) { s.DeadlineMs = ms },
	}
}
