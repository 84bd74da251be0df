package delivery

import (
	"slices"

	"github.com/turntable-streams/turntable/internal/rows/deliveryrow"
	"github.com/turntable-streams/turntable/topics"
)

// A row with which an older build could not keep a promise has a higher version, which that build refuses to read. An
// additional field is no reason: unknown fields survive a rewrite.
const (
	rowVersion = 1
	// rowChannels is the version of a row with deliveries to channels. An older build would attempt them without their origin,
	// and out of order.
	rowChannels = deliveryrow.Version
)

// formatOf returns the lowest version that can represent this state.
func formatOf(s *deliveryrow.State) uint32 {
	toChannel := func(d *deliveryrow.Delivery) bool { return d.Kind == topics.KindChannel }
	if slices.ContainsFunc(s.Open, toChannel) || slices.ContainsFunc(s.Dead, toChannel) {
		return rowChannels
	}
	return rowVersion
}
