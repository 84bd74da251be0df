package topics

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"

	"github.com/go-json-experiment/json/jsontext"
)

// Equal reports whether two values are the same JSON value, whatever their spacing, their escapes, the order of their
// members and the form of their numbers (1.10 and 1.1, 1e2 and 100). What is no JSON equals only the same bytes.
func Equal(a, b Raw) bool {
	return bytes.Equal(a, b) || bytes.Equal(canonical(a), canonical(b))
}

// Digest identifies a message by value.
type Digest [sha256.Size]byte

// DigestOf is the digest of what tells one message from another (R21): role, timestamp and content, by value. So a
// message that went through a worker which wrote its JSON anew keeps its digest.
func DigestOf(m Message) Digest {
	h := sha256.New()
	for _, part := range [][]byte{appendPointer(nil, m.Role), appendPointer(nil, m.Timestamp), canonical(m.Content)} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		_, _ = h.Write(length[:])
		_, _ = h.Write(part)
	}
	return Digest(h.Sum(nil))
}

// appendPointer tells nil from an empty text.
func appendPointer(b []byte, s *string) []byte {
	if s == nil {
		return b
	}
	return append(append(b, '"'), *s...)
}

// canonical is the one form of all equal values: sorted members, no spacing, least escapes, numbers as the doubles they
// are (integers that a double cannot hold keep their digits).
func canonical(v Raw) []byte {
	c := jsontext.Value(appendRaw(nil, v))
	err := c.Format(jsontext.ReorderRawObjects(true), jsontext.CanonicalizeRawFloats(true),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return v
	}
	return c
}
