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
	content := canonical(m.Content)
	head := appendPart(make([]byte, 0, 128), m.Role)
	head = appendPart(head, m.Timestamp)
	head = binary.BigEndian.AppendUint64(head, uint64(len(content)))
	h := sha256.New()
	_, _ = h.Write(head)
	_, _ = h.Write(content)
	return Digest(h.Sum(head[:0]))
}

// appendPart appends a text after its length. A byte before it tells it from none.
func appendPart(b []byte, s *string) []byte {
	if s == nil {
		return binary.BigEndian.AppendUint64(b, 0)
	}
	b = binary.BigEndian.AppendUint64(b, uint64(1+len(*s)))
	return append(append(b, '"'), *s...)
}

// canonical is the one form of all equal values: sorted members, no spacing, least escapes, numbers as the doubles they
// are (integers that a double cannot hold keep their digits).
//
// It may be v itself.
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
