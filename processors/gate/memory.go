package gate

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/turntable-streams/turntable/internal/digests"
)

// A row remembers what it no longer contains by digests: gates that ended, grants that were revoked. A byte field holds
// them, each followed by the time it was stored (8 bytes, milliseconds since the epoch), oldest first.
const (
	digestSize = digests.Size
	memorySize = digestSize + 8
)

type digest = digests.Digest

// The domains of digests: equal texts in different domains have different digests.
const (
	ofEnded   = "gate ended"
	ofRevoked = "grant revoked"
	ofCode    = "decision resolved"
)

// remember returns memory with a digest, without those that exceed the bounds.
func (c Config) remember(memory []byte, d digest, now time.Time) []byte {
	memory = append(memory, d[:]...)
	memory = binary.BigEndian.AppendUint64(memory, uint64(now.UnixMilli()))
	for len(memory) > c.RememberCount*memorySize || c.forgotten(memory, now) {
		memory = memory[memorySize:]
	}
	return memory
}

// remembers reports whether a digest is stored and not older than Config.RememberFor.
func (c Config) remembers(memory []byte, d digest, now time.Time) bool {
	for ; len(memory) >= memorySize; memory = memory[memorySize:] {
		if bytes.Equal(memory[:digestSize], d[:]) && !c.forgotten(memory, now) {
			return true
		}
	}
	return false
}

// forgotten reports whether the first digest in memory is as old as Config.RememberFor, or older.
func (c Config) forgotten(memory []byte, now time.Time) bool {
	if len(memory) < memorySize {
		return false
	}
	at := int64(binary.BigEndian.Uint64(memory[digestSize:]))
	return at <= now.Add(-c.RememberFor).UnixMilli()
}

// withoutHalf returns memory without its older half.
func withoutHalf(memory []byte) []byte {
	n := len(memory) / memorySize
	return memory[(n+1)/2*memorySize:]
}
