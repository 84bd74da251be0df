package agent

import (
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/topics"
)

// Group returns the group "{name}-crew-agents": the coding agents of all crews, in one row per agent. name is that of the catalog.
func Group(name string, c Config) (mailbox.Group[*State], error) {
	catalog, err := topics.For(name)
	if err != nil {
		return mailbox.Group[*State]{}, err
	}
	if err := c.complete(); err != nil {
		return mailbox.Group[*State]{}, err
	}
	return groupOf(catalog, c), nil
}

func groupOf(catalog topics.Catalog, c Config) mailbox.Group[*State] {
	return mailbox.Group[*State]{
		Topics: catalog, Name: catalog.CrewAgentsGroup(), Input: catalog.CrewAgentInputs, Kind: mailbox.OfAgent,
		Table: Table, New: func() *State { return &State{Mailbox: &mailbox.Mailbox{}} }, Apply: c.apply,
		SetDeadline: func(s *State, ms int64) { s.DeadlineMs = ms }, Outcomes: true,
	}
}
