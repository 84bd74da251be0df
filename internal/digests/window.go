package digests

import (
	"encoding/binary"
	"time"
)

// Window bounds what a row remembers: the IDs of at most Count records, each for at most For.
type Window struct {
	For   time.Duration
	Count int
}

// An entry is the first bytes of an ID's digest and the time at which it was added, in seconds since the epoch. Entries are
// stored one after the other, oldest first. A shorter digest than elsewhere keeps the row small: it is written with each
// record. Two of 1000 IDs have the same one with a probability of less than 1 in 10^13.
const (
	prefixSize = 8
	entrySize  = prefixSize + 4
)

func entryPrefix(id string) uint64 {
	d := Of("seen", id)
	return binary.BigEndian.Uint64(d[:prefixSize])
}

// Has reports whether entries contain an ID that was added less than w.For ago.
func (w Window) Has(entries []byte, id string, now time.Time) bool {
	want := entryPrefix(id)
	for ; len(entries) >= entrySize; entries = entries[entrySize:] {
		if binary.BigEndian.Uint64(entries) == want && !w.expired(entries, now) {
			return true
		}
	}
	return false
}

// Add returns entries with an ID added and without those that are beyond the window. It does not modify entries.
func (w Window) Add(entries []byte, id string, now time.Time) []byte {
	for len(entries) >= entrySize && (len(entries) > (w.Count-1)*entrySize || w.expired(entries, now)) {
		entries = entries[entrySize:]
	}
	added := make([]byte, 0, len(entries)+entrySize)
	added = append(added, entries...)
	added = binary.BigEndian.AppendUint64(added, entryPrefix(id))
	return binary.BigEndian.AppendUint32(added, uint32(now.Unix()))
}

// Prune returns entries without those that are as old as w.For or older, nil if none is left. It does not modify entries.
func (w Window) Prune(entries []byte, now time.Time) []byte {
	for len(entries) >= entrySize && w.expired(entries, now) {
		entries = entries[entrySize:]
	}
	if len(entries) < entrySize {
		return nil
	}
	return entries
}

// NewestEntries returns the last n entries. It does not modify entries.
func NewestEntries(entries []byte, n int) []byte {
	return entries[max(0, len(entries)-n*entrySize):]
}

// CountEntries returns how many IDs entries contain.
func CountEntries(entries []byte) int { return len(entries) / entrySize }

// expired reports whether the first entry is as old as w.For or older. An entry's time has no fraction of a second, so it is
// treated as that much younger.
func (w Window) expired(entries []byte, now time.Time) bool {
	at := int64(binary.BigEndian.Uint32(entries[prefixSize:])) + 1
	return time.Unix(at, 0).Add(w.For).Compare(now) <= 0
}
