package entrance

import (
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors/auth"
)

// WarnOpen logs what everyone may do with a door that authenticates no one, unless its configuration says that this is meant. The
// agent may be empty.
func WarnOpen(d auth.Door, agent, text string) {
	if d.Authenticate == nil && !d.Open {
		d.Logger.Warn(text, zap.String("agent", agent))
	}
}
