package processors

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"unicode"
	"unicode/utf8"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/topics"
)

// maxCauseID is the largest turntable.id header that is used as an ID, in bytes.
const maxCauseID = 256

// causeID identifies a record as the cause of everything that follows from it: its turntable.id header, or else a hash
// of its coordinates, timestamp and value. It is the same each time the record is redelivered, so IDs that are derived
// from it let readers deduplicate.
func causeID(r *record) string {
	if id, ok := headerID(r.headers); ok {
		return id
	}
	partition, offset := topics.FirstAt(r.headers[topics.HeaderFirstAt], r.partition, r.offset)
	h := sha256.New()
	var n [8]byte
	number := func(v int64) { h.Write(binary.BigEndian.AppendUint64(n[:0], uint64(v))) }
	number(int64(len(r.topic)))
	h.Write([]byte(r.topic))
	number(int64(partition))
	number(offset)
	number(r.timestamp.UnixMilli())
	if r.raw == nil {
		number(-1) // a tombstone is not an empty value
	} else {
		number(int64(len(r.raw)))
		h.Write(r.raw)
	}
	var sum [sha256.Size]byte
	var id [2 * sha256.Size]byte
	return string(hex.AppendEncode(id[:0], h.Sum(sum[:0])))
}

// headerID is the record's turntable.id header. A header that is empty, too long, not UTF-8 or not printable counts as
// absent, because it could not be copied to another record or logged.
func headerID(headers goka.Headers) (string, bool) {
	raw := headers[topics.HeaderID]
	if len(raw) == 0 || len(raw) > maxCauseID || !utf8.Valid(raw) {
		return "", false
	}
	id := string(raw)
	for _, r := range id {
		if !unicode.IsPrint(r) {
			return "", false
		}
	}
	return id, true
}
