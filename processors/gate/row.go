package gate

import (
	"fmt"
	"slices"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/rows"
)

// A row with which an older build could not keep a promise has a higher version, which that build refuses to read. An
// additional field is no reason: unknown fields survive a rewrite.
const (
	rowVersion = 1
	// rowChannels is the version of a row with a gate that a person is asked about on a channel, or with such a person's
	// decision. An older build would apply decisions from any place and any person.
	rowChannels = 2
	// rowProof is the version of a row with a gate on a channel that does not prove who writes there. An older build would apply
	// decisions without a code.
	rowProof = 3
)

// ErrRowVersion is wrapped by the error of a row that a newer build wrote.
var ErrRowVersion = fmt.Errorf("%w: gate: row has a newer version", processors.ErrKeepRecord)

var layout = rows.Format{Name: "gate", Version: rowProof, Newer: ErrRowVersion}

// format returns the lowest version that can represent this state.
func (s *State) format() uint32 {
	if slices.ContainsFunc(s.Open, func(g *Gate) bool { return g.Proof != "" }) {
		return rowProof
	}
	if slices.ContainsFunc(s.Open, func(g *Gate) bool { return len(g.Channel) > 0 }) ||
		slices.ContainsFunc(s.Early, (*Held).GetOnChannel) {
		return rowChannels
	}
	return rowVersion
}

// EncodeState encodes a row.
func EncodeState(s *State) ([]byte, error) { return layout.Encode(s) }

// DecodeState decodes a row. The error wraps ErrRowVersion if the row has a newer version.
func DecodeState(raw []byte) (*State, error) { return decodeInto(raw, &State{}) }

func decodeInto[M rows.Message](raw []byte, empty M) (none M, err error) {
	if err := layout.Decode(raw, empty); err != nil {
		return none, err
	}
	return empty, nil
}
