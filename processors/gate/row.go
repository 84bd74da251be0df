package gate

import (
	"slices"

	"github.com/turntable-streams/turntable/internal/rows/gaterow"
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
	rowProof = gaterow.Version
)

// formatOf returns the lowest version that can represent this state.
func formatOf(s *gaterow.State) uint32 {
	if slices.ContainsFunc(s.Open, func(g *gaterow.Gate) bool { return g.Proof != "" }) {
		return rowProof
	}
	if slices.ContainsFunc(s.Open, func(g *gaterow.Gate) bool { return len(g.Channel) > 0 }) ||
		slices.ContainsFunc(s.Early, (*gaterow.Held).GetOnChannel) {
		return rowChannels
	}
	return rowVersion
}
