package gate

import (
	"time"

	"github.com/turntable-streams/turntable/processors/internal/machine"
)

// A row remembers what it no longer contains by digests: gates that ended (gaterow.EndedDigest), grants that were revoked. The domains
// of digests: equal texts in different domains have different digests.
const (
	ofRevoked = "grant revoked"
	ofCode    = "decision resolved"
)

func (t *transition) memory() machine.Digests { return t.config.memory(t.now) }
func (t *grants) memory() machine.Digests     { return t.config.memory(t.now) }

func (c Config) memory(now time.Time) machine.Digests {
	return machine.Digests{Now: now, For: c.RememberFor, Count: c.RememberCount}
}
