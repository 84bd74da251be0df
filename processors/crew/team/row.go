package team

import (
	"fmt"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/manifest"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/talk"
	"github.com/turntable-streams/turntable/processors/internal/rows"
)

const rowVersion = 1

// ErrRowVersion is wrapped by the error of a row that a newer build wrote.
var ErrRowVersion = fmt.Errorf("%w: crew: row of a crew has a newer version", processors.ErrKeepRecord)

var layout = rows.Format{Name: "crew", Version: rowVersion, Newer: ErrRowVersion}

// TableCodec returns the codec of Graph's table, for views and tools that read it. Decode returns a codec.Decoded[*State];
// pass that to RowOf.
func TableCodec() codec.Codec[*State] { return codec.Of[*State](stateFormat{}) }

type stateFormat struct{}

func (stateFormat) Marshal(s *State) ([]byte, error) { return layout.Encode(s) }

func (stateFormat) Unmarshal(raw []byte) (*State, error) {
	s := newState()
	if err := layout.Decode(raw, s); err != nil {
		return nil, err
	}
	return s.complete(), nil
}

// RowOf returns the state in a value of Graph's table, as Processor.Get, a goka.View or a test harness returns it. A nil value
// is a crew without a row and returns nil. The error wraps ErrRowVersion if a newer build wrote the row, or codec.ErrType if
// the value is of another type.
func RowOf(value any) (*State, error) { return rows.Of[*State](value, "package team") }

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
