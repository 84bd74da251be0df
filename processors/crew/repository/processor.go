package repository

import (
	"fmt"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/topics"
)

// Graph returns the group "{agent}-crew-repositories" for processors.New: the locks and commits, in one row per repository. name
// is the catalog's agent name. It returns an error if the name is invalid, or one that wraps ErrOption if an option is out of
// range.
func Graph(name string, opts ...Option) (*goka.GroupGraph, error) {
	catalog, err := topics.For(name)
	if err != nil {
		return nil, fmt.Errorf("crew repository: %w", err)
	}
	r, err := rulesOf(opts)
	if err != nil {
		return nil, err
	}
	return group(catalog, r).Graph(), nil
}

func group(catalog topics.Catalog, r rules) mailbox.Group[*State] {
	return mailbox.Group[*State]{
		Topics: catalog, Name: catalog.CrewRepositoriesGroup(), Input: catalog.CrewRepositoryInputs, Kind: mailbox.OfRepository,
		Table: Table, New: newState, Apply: r.apply,
		SetDeadline: func(row *State, ms int64) { row.DeadlineMs = ms },
	}
}
