package delivery

import (
	"fmt"
	"slices"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/rows"
	"github.com/turntable-streams/turntable/topics"
)

// A row with which an older build could not keep a promise has a higher version, which that build refuses to read. An
// additional field is no reason: unknown fields survive a rewrite.
const (
	rowVersion = 1
	// rowChannels is the version of a row with deliveries to channels. An older build would attempt them without their origin,
	// and out of order.
	rowChannels = 2
)

// ErrRowVersion is wrapped by the error of a row that a newer build wrote.
var ErrRowVersion = fmt.Errorf("%w: delivery: row has a newer version", processors.ErrKeepRecord)

var layout = rows.Format{Name: "delivery", Version: rowChannels, Newer: ErrRowVersion}

// format returns the lowest version that can represent this state.
func (s *State) format() uint32 {
	toChannel := func(d *Delivery) bool { return d.Kind == topics.KindChannel }
	if slices.ContainsFunc(s.Open, toChannel) || slices.ContainsFunc(s.Dead, toChannel) {
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
