package agent

import (
	"fmt"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/topics"
)

// Graph returns the group "{name}-crew-agents" for processors.New: the coding agents of all crews, in one row per agent. name
// is the name of the catalog's agent. The catalog of the processor needs topics.WithCrews and topics.WithGates. Graph returns
// an error if the name is invalid, or one that wraps ErrOption if an option is out of range.
func Graph(name string, opts ...Option) (*goka.GroupGraph, error) {
	catalog, err := topics.For(name)
	if err != nil {
		return nil, fmt.Errorf("crew agent: %w", err)
	}
	r, err := rulesOf(opts)
	if err != nil {
		return nil, err
	}
	return groupOf(catalog, r).Graph(), nil
}

func groupOf(catalog topics.Catalog, r rules) mailbox.Group[*State] {
	return mailbox.Group[*State]{
		Topics: catalog, Name: catalog.CrewAgentsGroup(), Input: catalog.CrewAgentInputs, Kind: mailbox.OfAgent,
		Table: Table, New: func() *State { return &State{Mailbox: &mailbox.Mailbox{}} }, Apply: r.apply,
		SetDeadline: func(s *State, ms int64) { s.DeadlineMs = ms }, Outcomes: true,
	}
}
