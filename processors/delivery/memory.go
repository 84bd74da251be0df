package delivery

import (
	"encoding/hex"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/processors/internal/machine"
)

// A session deduplicates by digests of what it has handled. The domains of digests: equal texts in different domains have
// different digests.
const (
	ofDelivery = "delivery"
	ofMessage  = "channel message"
	ofTurn     = "turn"
	ofEnded    = "ended"
	ofRoute    = "route used"
	ofToken    = "token of an early output"
	ofControl  = "control"
	ofJitter   = "jitter"
)

// identify derives an ID, such as that of a delivery from its session, its turn and its route.
func identify(domain string, parts ...string) string {
	d := digests.Of(domain, parts...)
	return hex.EncodeToString(d[:])
}

func (t *transition) memory() machine.Digests {
	return machine.Digests{Now: t.now, For: t.config.RememberFor, Count: t.config.RememberCount}
}

func (t *transition) remember(d digests.Digest) {
	t.row.Remembered = t.memory().Add(t.row.Remembered, d)
}

func (t *transition) remembers(d digests.Digest) bool { return t.memory().Has(t.row.Remembered, d) }
