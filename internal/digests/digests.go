// Package digests names things by what they are made of, and keeps what was seen without keeping what it said.
package digests

import (
	"crypto/sha256"
	"encoding/binary"
)

// Size is that of a digest, in bytes.
const Size = 16

// Digest is the front of a SHA-256.
type Digest [Size]byte

// Of is the digest of texts in their order: no two different lists have one text. Equal texts of different domains have
// different digests.
func Of[T ~string | ~[]byte](domain string, parts ...T) Digest {
	size := len(domain)
	for _, p := range parts {
		size += lengthSize + len(p)
	}
	var room [1024]byte
	if size > len(room) {
		return ofLong(domain, parts)
	}
	// Most lists are short. They are laid end to end on the stack, so that nothing is allocated.
	text := append(room[:0], domain...)
	for _, p := range parts {
		text = binary.BigEndian.AppendUint64(text, uint64(len(p)))
		text = append(text, p...)
	}
	sum := sha256.Sum256(text)
	return Digest(sum[:Size])
}

// lengthSize is that of the length ahead of each text.
const lengthSize = 8

// ofLong digests texts piece by piece: there is no copy of all of them.
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
