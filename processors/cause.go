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

// maxCauseID bounds what is taken for an id from a foreign record's header.
const maxCauseID = 256

// causeID is the id that names the cause of everything a record brings about (R20): its turntable.id header, else a
// hash of its coordinates, timestamp and value. The same record has the same id at every replay.
func causeID(r *record) string {
	if id, ok := headerID(r.headers); ok {
		return id
	}
	h := sha256.New()
	var n [8]byte
	number := func(v int64) { h.Write(binary.BigEndian.AppendUint64(n[:0], uint64(v))) }
	number(int64(len(r.topic)))
	h.Write([]byte(r.topic))
	number(int64(r.partition))
	number(r.offset)
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

// headerID is the record's own id. What cannot be one of ours, and could not be passed on as a header or printed,
// counts as absent.
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
