package fold

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows/foldrow"
)

// Closed turns are remembered as digests, each with the time it was closed and its attempt. Entries have a fixed size and
// are stored in pages, which are parts of the row. The last page is rewritten with every turn that is closed. The row,
// which is written with every event, contains only the numbers of the pages.
const (
	digestSize  = digests.Size
	entrySize   = digestSize + 8 + 8
	pageEntries = 64
)

type digest = digests.Digest

// The domains of digests. Equal texts have different digests in different domains.
const (
	ofTurn    = "turn"
	ofControl = "control"
	ofRecord  = "record"
)

// remember appends a digest and drops old pages.
func (s *transition) remember(d digest, attempt uint64) {
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
	page := &foldrow.Page{Part: s.number(), Count: count + 1, LastMs: s.nowMS()}
	s.write(page.Part, entries)
	s.row.Closed = append(s.row.Closed, page)
	s.forget()
}

// forget drops pages, the oldest first, that are older than RememberFor or not needed for RememberCount.
func (s *transition) forget() {
	left := 0
	for _, p := range s.row.Closed {
		left += int(p.Count)
	}
	for len(s.row.Closed) > 0 {
		oldest := s.row.Closed[0]
		if left -= int(oldest.Count); left < s.config.RememberCount && !s.forgotten(oldest.LastMs) {
			return
		}
		s.drop(oldest.Part)
		s.row.Closed = s.row.Closed[1:]
	}
}

// remembers looks up a digest, from the newest page to the oldest.
func (s *transition) remembers(d digest) (attempt uint64, ok bool) {
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

// closedAttempt returns the attempt of a closed turn.
func (s *transition) closedAttempt(turn string) (int64, bool) {
	attempt, ok := s.remembers(digests.Of(ofTurn, turn))
	return int64(attempt), ok
}

func (s *transition) forgotten(atMS int64) bool {
	return atMS <= s.now.Add(-s.config.RememberFor).UnixMilli()
}
