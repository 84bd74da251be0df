package team

import (
	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/manifest"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/talk"
)

const rowVersion = 1

// Table is the format of the row of a crew.
var Table = rows.Table[*State]{Name: "crew", Version: rowVersion, Loaded: func(s *State) error {
	s.complete()
	return nil
}}

func newState() *State { return (&State{Version: rowVersion}).complete() }

// complete adds the messages that every row has.
func (s *State) complete() *State {
	if s.Mailbox == nil {
		s.Mailbox = &mailbox.Mailbox{}
	}
	if s.Roster == nil {
		s.Roster = &roster.Roster{}
	}
	if s.Talk == nil {
		s.Talk = &talk.Talk{}
	}
	if s.Refresh == nil {
		s.Refresh = &manifest.Refresh{}
	}
	if s.Settings == nil {
		s.Settings = &Settings{}
	}
	return s
}
