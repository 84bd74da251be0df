package fold

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/turntable-streams/turntable/internal/digests"
)

// Turns that have their batch are remembered as digests, each with the time it was closed and its attempt, packed end to
// end in pages. A page is a part of the row. The last one is written anew with every turn that is closed; the row,
// which is written with every event, only names them.
const (
	digestSize  = digests.Size
	entrySize   = digestSize + 8 + 8
	pageEntries = 64
)

type digest = digests.Digest

// The domains of digests: equal texts of different domains have different digests.
const (
	ofTurn    = "turn"
	ofControl = "control"
	ofRecord  = "record"
)

// remember appends a digest, and drops pages that are too old or too many.
func (s *session) remember(d digest, attempt uint64) {
	var entries []byte
	count := uint32(0)
	if n := len(s.row.Closed); n > 0 && s.row.Closed[n-1].Count < pageEntries {
		last := s.row.Closed[n-1]
		if page, ok := s.read(last.Part); ok {
			entries, count = bytes.Clone(page), last.Count
		}
		s.drop(last.Part)
		s.row.Closed = s.row.Closed[:n-1]
	}
	entries = append(entries, d[:]...)
	entries = binary.BigEndian.AppendUint64(entries, uint64(s.nowMS()))
	entries = binary.BigEndian.AppendUint64(entries, attempt)
	page := &Page{Part: s.number(), Count: count + 1, LastMs: s.nowMS()}
	s.write(page.Part, entries)
	s.row.Closed = append(s.row.Closed, page)
	s.forget()
}

// forget drops the oldest pages as long as enough is left, and those that are too old.
func (s *session) forget() {
	left := 0
	for _, p := range s.row.Closed {
		left += int(p.Count)
	}
	for len(s.row.Closed) > 0 {
		oldest := s.row.Closed[0]
		if left -= int(oldest.Count); left < s.rules.RememberCount && !s.forgotten(oldest.LastMs) {
			return
		}
		s.drop(oldest.Part)
		s.row.Closed = s.row.Closed[1:]
	}
}

// remembers looks for a digest, the latest first.
func (s *session) remembers(d digest) (attempt uint64, ok bool) {
	for _, p := range slices.Backward(s.row.Closed) {
		if s.forgotten(p.LastMs) {
			continue
		}
		page, _ := s.read(p.Part)
		for ; len(page) >= entrySize; page = page[entrySize:] {
			at := int64(binary.BigEndian.Uint64(page[digestSize:]))
			if bytes.Equal(page[:digestSize], d[:]) && !s.forgotten(at) {
				return binary.BigEndian.Uint64(page[digestSize+8:]), true
			}
		}
	}
	return 0, false
}

// closedAttempt is the attempt of a turn that has its batch.
func (s *session) closedAttempt(turn string) (int64, bool) {
	attempt, ok := s.remembers(digests.Of(ofTurn, turn))
	return int64(attempt), ok
}

func (s *session) forgotten(atMS int64) bool {
	return atMS <= s.now.Add(-s.rules.RememberFor).UnixMilli()
}
