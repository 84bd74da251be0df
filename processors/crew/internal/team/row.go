package team

import (
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/manifest"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/talk"
)

// Table is the format of the row of a crew.
var Table = mailbox.Table("crew", (*State).complete)

// complete adds the messages that every row has.
func (s *State) complete() {
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
}
