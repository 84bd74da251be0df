package progress

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"
)

// Note says that the call of a record that was handed over is settled. The previous owner of the record's partition can no
// longer commit for it, so its notes are in the metadata of partitions that it owns.
type Note struct {
	Place  Place
	Offset int64
	Until  time.Time // identifies the handover
}

// Place identifies a partition by a digest of its name.
type Place uint32

// PlaceOf returns the Place of a partition.
func PlaceOf(topic string, partition int32) Place {
	return Place(crc32.ChecksumIEEE(fmt.Appendf(nil, "%s/%d", topic, partition)))
}

// Told returns the Until of the note for a running record whose partition is not claimed. It reports false for other
// records.
func (p *Partition) Told(offset int64) (until time.Time, ok bool) {
	r := p.known[offset]
	if p.claimed || r == nil || r.state != running {
		return time.Time{}, false
	}
	return r.told, true
}

// Confirm settles a record that is deferred, if the note is about its handover. It returns how many records left the window.
func (p *Partition) Confirm(n Note) (left int, ok bool) {
	r := p.known[n.Offset]
	if r == nil || r.state != elsewhere || !r.until.Equal(n.Until) {
		return 0, false
	}
	return p.Settle(n.Offset), true
}

func (c Checkpoint) encodeNotes(size int) (raw []byte, n int) {
	for _, note := range c.Notes {
		next := binary.AppendUvarint(raw, uint64(note.Place))
		next = binary.AppendUvarint(next, uint64(note.Offset))
		next = binary.AppendUvarint(next, uint64(note.Until.UnixMilli()))
		if len(next) > size {
			break
		}
		raw, n = next, n+1
	}
	return raw, n
}

func (r *reader) notes() (notes []Note) {
	for n := r.number(); n > 0 && !r.failed; n-- {
		notes = append(notes, Note{Place(r.number()), r.number(), time.UnixMilli(r.number())})
	}
	return notes
}
