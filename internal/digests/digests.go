// Package digests computes digests of lists of texts. They serve as deterministic ids, and to recognize a value without
// storing it. A Window remembers in a row which records were added to it, so that a repeated record is not added twice.
package digests

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// Size is the size of a digest in bytes.
const Size = 16

// Digest is the first Size bytes of a SHA-256 hash.
type Digest [Size]byte

// Of returns the digest of parts in their order. Each part is hashed with its length, so that different lists with the
// same concatenation have different digests. The domain is hashed too: use one for each purpose.
func Of[T ~string | ~[]byte](domain string, parts ...T) Digest {
	size := len(domain)
	for _, p := range parts {
		size += lengthSize + len(p)
	}
	var room [1024]byte
	if size > len(room) {
		return ofLong(domain, parts)
	}
	// Most lists are short. They are concatenated on the stack, without an allocation.
	text := append(room[:0], domain...)
	for _, p := range parts {
		text = binary.BigEndian.AppendUint64(text, uint64(len(p)))
		text = append(text, p...)
	}
	sum := sha256.Sum256(text)
	return Digest(sum[:Size])
}

// Turn returns the ID of the turn of a message (processors/turn): 32 hexadecimal digits. cause is the turntable.id of the message's
// record, or what stands for it.
func Turn(session, cause string) string {
	d := Of("turn", session, cause)
	var text [2 * Size]byte
	return string(hex.AppendEncode(text[:0], d[:]))
}

// Hex returns 32 hexadecimal digits that are the same for the same parts only.
func Hex(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		sum := sha256.Sum256([]byte(part))
		h.Write(sum[:])
	}
	return hex.EncodeToString(h.Sum(nil)[:Size])
}

// lengthSize is the size of the length before each part, in bytes.
const lengthSize = 8

// ofLong hashes the parts one by one, without copying them into one buffer.
func ofLong[T ~string | ~[]byte](domain string, parts []T) Digest {
	h := sha256.New()
	var length [lengthSize]byte
	h.Write([]byte(domain))
	for _, p := range parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(p)))
		h.Write(length[:])
		h.Write([]byte(p))
	}
	var sum [sha256.Size]byte
	return Digest(h.Sum(sum[:0])[:Size])
}
