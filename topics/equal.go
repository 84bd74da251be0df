package topics

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"

	"github.com/go-json-experiment/json/jsontext"
)

// Equal reports whether two values are the same JSON value. Spacing, escapes, the order of members and the form of
// numbers (1.10 and 1.1, 1e2 and 100) are ignored. Bytes that are not JSON are equal only to the same bytes.
func Equal(a, b Raw) bool {
	return bytes.Equal(a, b) || bytes.Equal(canonical(a), canonical(b))
}

// Digest is the SHA-256 digest of a message. Messages that are equal by value have the same digest.
type Digest [sha256.Size]byte

// DigestOf returns the digest of a message's role, timestamp and content. Content is compared by JSON value, so the
// digest does not change when a worker decodes the message and encodes it again.
func DigestOf(m Message) Digest {
	content := canonical(m.Content)
	head := appendPart(make([]byte, 0, 128), m.Role)
	head = appendPart(head, m.Timestamp)
	head = binary.BigEndian.AppendUint64(head, uint64(len(content)))
	h := sha256.New()
	_, _ = h.Write(head)
	_, _ = h.Write(content)
	return Digest(h.Sum(head[:0]))
}

// appendPart appends a string after its length. A byte before the string distinguishes an empty string from nil.
func appendPart(b []byte, s *string) []byte {
	if s == nil {
		return binary.BigEndian.AppendUint64(b, 0)
	}
	b = binary.BigEndian.AppendUint64(b, uint64(1+len(*s)))
	return append(append(b, '"'), *s...)
}

// canonical returns the same bytes for all equal values: members sorted, no spacing, minimal escapes, numbers formatted
// as doubles (integers that a double cannot hold keep their digits). The result may be v itself.
func canonical(v Raw) []byte {
	if isCanonical(v) {
		return v
	}
	if v == nil {
		return []byte("null")
	}
	c, err := jsontext.AppendFormat(nil, v, jsontext.ReorderRawObjects(true), jsontext.CanonicalizeRawFloats(true),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return v
	}
	return c
}
