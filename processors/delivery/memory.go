package delivery

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"time"

	"github.com/turntable-streams/turntable/internal/digests"
)

// A session deduplicates by digests of what it has handled. The row holds them in one byte field, each followed by the
// time it was stored (8 bytes, milliseconds since the epoch), oldest first.
const (
	digestSize = digests.Size
	memorySize = digestSize + 8
)

type digest = digests.Digest

// The domains of digests: equal texts in different domains have different digests.
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

// deliveryID derives the ID of a delivery from its session, its turn and its route.
func deliveryID(session, turn, route string) string {
	return identify(ofDelivery, session, turn, route)
}

func identify(domain string, parts ...string) string { return hexOf(digests.Of(domain, parts...)) }

func hexOf(d digest) string { return hex.EncodeToString(d[:]) }

// remember stores a digest and drops those that exceed Config.RememberFor or Config.RememberCount.
func (t *transition) remember(d digest) {
	memory := append(t.row.Remembered, d[:]...)
	memory = binary.BigEndian.AppendUint64(memory, uint64(t.nowMS()))
	for len(memory) > t.config.RememberCount*memorySize || firstExpired(memory, t.now, t.config.RememberFor) {
		memory = memory[memorySize:]
	}
	t.row.Remembered = memory
}

// remembers reports whether a digest is stored and not older than Config.RememberFor.
func (t *transition) remembers(d digest) bool {
	for memory := t.row.Remembered; len(memory) >= memorySize; memory = memory[memorySize:] {
		if bytes.Equal(memory[:digestSize], d[:]) && !firstExpired(memory, t.now, t.config.RememberFor) {
			return true
		}
	}
	return false
}

// firstExpired reports whether the first digest in memory is as old as ttl, or older.
func firstExpired(memory []byte, now time.Time, ttl time.Duration) bool {
	if len(memory) < memorySize {
		return false
	}
	at := int64(binary.BigEndian.Uint64(memory[digestSize:]))
	return at <= now.Add(-ttl).UnixMilli()
}

// forgetHalf drops the older half of the digests.
func (t *transition) forgetHalf() {
	n := len(t.row.Remembered) / memorySize
	t.row.Remembered = t.row.Remembered[(n+1)/2*memorySize:]
}
