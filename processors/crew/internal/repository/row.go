package repository

import (
	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
)

const rowVersion = 1

// Table is the format of the row of a repository.
var Table = rows.Table[*State]{Name: "crew repository", Version: rowVersion, Loaded: func(s *State) error {
	if s.Mailbox == nil {
		s.Mailbox = &mailbox.Mailbox{}
	}
	return nil
}}

func newState() *State { return &State{Version: rowVersion, Mailbox: &mailbox.Mailbox{}} }
