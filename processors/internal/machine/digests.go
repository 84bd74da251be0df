package machine

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/turntable-streams/turntable/internal/digests"
)

// DigestSize is the number of bytes of a digest and the time it was stored (8 bytes, milliseconds since the epoch).
const DigestSize = digests.Size + 8

// Digests bounds the memory of a row: digests of what it has handled and no longer contains. They are in one byte field, each
// followed by the time it was stored, oldest first.
type Digests struct {
	Now   time.Time
	For   time.Duration
	Count int
}

// Add returns memory with a digest, without those that exceed the bounds.
func (d Digests) Add(memory []byte, digest digests.Digest) []byte {
	memory = append(memory, digest[:]...)
	memory = binary.BigEndian.AppendUint64(memory, uint64(d.Now.UnixMilli()))
	for len(memory) > d.Count*DigestSize || d.expired(memory) {
		memory = memory[DigestSize:]
	}
	return memory
}

// Has reports whether a digest is stored and not older than d.For.
func (d Digests) Has(memory []byte, digest digests.Digest) bool {
	for ; len(memory) >= DigestSize; memory = memory[DigestSize:] {
		if bytes.Equal(memory[:digests.Size], digest[:]) && !d.expired(memory) {
			return true
		}
	}
	return false
}

// expired reports whether the first digest in memory is as old as d.For, or older.
func (d Digests) expired(memory []byte) bool {
	if len(memory) < DigestSize {
		return false
	}
	at := int64(binary.BigEndian.Uint64(memory[digests.Size:]))
	return at <= d.Now.Add(-d.For).UnixMilli()
}

// Half returns memory without its older half, and without its only digest.
func Half(memory []byte) []byte {
	n := len(memory) / DigestSize
	return memory[(n+1)/2*DigestSize:]
}
