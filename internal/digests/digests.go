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
	h := sha256.New()
	var length [8]byte
	h.Write([]byte(domain))
	for _, p := range parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(p)))
		h.Write(length[:])
		h.Write([]byte(p))
	}
	return Digest(h.Sum(nil)[:Size])
}
