package team

import (
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/topics"
)

// Group returns the group "{name}-crews": all crews, in one row per crew. name is that of the catalog.
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
		Topics: catalog, Name: catalog.CrewsGroup(), Input: catalog.CrewInputs, Kind: mailbox.OfCrew, Table: Table,
		New: newState, Apply: c.apply,
		SetDeadline: func(s *State, ms int64) { s.DeadlineMs = ms },
	}
}
