package delivery

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"time"

	"github.com/turntable-streams/turntable/internal/digests"
)

// What a session remembers of its past is kept as digests with the time they were taken, packed end to end in one byte
// field.
const (
	digestSize = digests.Size
	memorySize = digestSize + 8
)

type digest = digests.Digest

// The domains of digests: equal texts of different domains have different digests.
const (
	ofDelivery = "delivery"
	ofTurn     = "turn"
	ofEnded    = "ended"
	ofRoute    = "route used"
	ofControl  = "control"
	ofJitter   = "jitter"
)

// deliveryID names a delivery by what is delivered and where to.
func deliveryID(session, turn, route string) string {
	d := digests.Of(ofDelivery, session, turn, route)
	return hex.EncodeToString(d[:])
}

// remember appends a digest and drops what is too old or too much.
func (s *session) remember(d digest) {
	memory := append(s.row.Remembered, d[:]...)
	memory = binary.BigEndian.AppendUint64(memory, uint64(s.nowMS()))
	for len(memory) > s.rules.RememberCount*memorySize || forgotten(memory, s.now, s.rules.RememberFor) {
		memory = memory[memorySize:]
	}
	s.row.Remembered = memory
}

// remembers reports whether a digest is in memory and not too old.
func (s *session) remembers(d digest) bool {
	for memory := s.row.Remembered; len(memory) >= memorySize; memory = memory[memorySize:] {
		if bytes.Equal(memory[:digestSize], d[:]) && !forgotten(memory, s.now, s.rules.RememberFor) {
			return true
		}
	}
	return false
}

// forgotten reports whether the first digest in memory is too old.
func forgotten(memory []byte, now time.Time, keep time.Duration) bool {
	if len(memory) < memorySize {
		return false
	}
	at := int64(binary.BigEndian.Uint64(memory[digestSize:]))
	return at <= now.Add(-keep).UnixMilli()
}

// forgetHalf drops the older half of what is remembered.
func (s *session) forgetHalf() {
	n := len(s.row.Remembered) / memorySize
	s.row.Remembered = s.row.Remembered[(n+1)/2*memorySize:]
}
