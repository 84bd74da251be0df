package progress

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strings"
	"time"
)

// Checkpoint is what a commit says about a partition. Next is the committed offset; the rest is the commit's metadata.
type Checkpoint struct {
	// Next is the offset before which every record is settled.
	Next int64
	// Done are settled offsets beyond Next, in ascending order.
	Done []Span
	// Open are records that are not settled and whose handler was called, in ascending order.
	Open []Open
	// Reserved is the offset below which records may have been started that Open does not list. If zero, Open is complete.
	Reserved int64
	// Notes are about records of other partitions.
	Notes []Note

	// read is the offset after the last record that was read or is listed. It is not encoded.
	read int64
}

// Open is a record that is not settled and whose handler was called.
type Open struct {
	Offset int64
	// Attempts is how often the handler was called, an unfinished call included.
	Attempts int
	// Until is the time until which the last call may run elsewhere, with milliseconds. Zero: it runs nowhere, or its
	// process decides when it ends.
	Until time.Time
	// Runner identifies the member that makes the last call, if Until is not zero.
	Runner Runner
}

// Runner identifies a member of the group by a digest of its member ID, which is too long for a commit.
type Runner uint32

// RunnerOf returns the Runner with a member ID.
func RunnerOf(memberID string) Runner { return Runner(crc32.ChecksumIEEE([]byte(memberID))) }

// MaxMetadata is the size of the largest metadata that a broker accepts by default (offset.metadata.max.bytes), in bytes.
const MaxMetadata = 4096

// magic begins the metadata that this package writes. Its last part is the version of the encoding; another version is
// ignored like metadata of another program.
const magic = "turntable.worker.1:"

// Encode returns the metadata in at most limit bytes. Of Open at most half of the limit is used, of Notes a quarter,
// and Done gets the rest. What does not fit is dropped from the end; the reservation then includes these records, so that
// they are delivered as repeated.
// If limit is too small for any content, Encode returns "".
func (c Checkpoint) Encode(limit int) string {
	size := base64.RawStdEncoding.DecodedLen(limit - len(magic))
	const header = 7 * binary.MaxVarintLen64
	if size < header {
		return ""
	}
	size -= header
	open, listed := c.encodeOpen(size / 2)
	notes, noted := c.encodeNotes(size / 4)
	done, spans := c.encodeDone(size - len(open) - len(notes))
	if listed < len(c.Open) || spans < len(c.Done) {
		c.Reserved = max(c.Reserved, c.read)
	}
	// The offset is part of the metadata because tools copy metadata to other offsets, for example MirrorMaker.
	raw := binary.AppendUvarint(nil, uint64(c.Next))
	raw = binary.AppendUvarint(raw, uint64(c.Reserved))
	raw = binary.AppendUvarint(raw, uint64(c.base()))
	raw = binary.AppendUvarint(raw, uint64(listed))
	raw = append(raw, open...)
	raw = binary.AppendUvarint(raw, uint64(spans))
	raw = append(raw, done...)
	raw = binary.AppendUvarint(raw, uint64(noted))
	raw = append(raw, notes...)
	return magic + base64.RawStdEncoding.EncodeToString(raw)
}

// base is the earliest Until in milliseconds. Others are encoded relative to it.
func (c Checkpoint) base() int64 {
	base := int64(0)
	for _, o := range c.Open {
		if !o.Until.IsZero() && (base == 0 || o.Until.UnixMilli() < base) {
			base = o.Until.UnixMilli()
		}
	}
	return base
}

func (c Checkpoint) encodeOpen(size int) (raw []byte, n int) {
	at, base := c.Next, c.base()
	for _, o := range c.Open {
		next := binary.AppendUvarint(raw, uint64(o.Offset-at))
		next = binary.AppendUvarint(next, uint64(o.Attempts))
		if o.Until.IsZero() {
			next = binary.AppendUvarint(next, 0)
		} else {
			next = binary.AppendUvarint(next, uint64(o.Until.UnixMilli()-base)+1)
			next = binary.AppendUvarint(next, uint64(o.Runner))
		}
		if len(next) > size {
			break
		}
		raw, at, n = next, o.Offset, n+1
	}
	return raw, n
}

func (c Checkpoint) encodeDone(size int) (raw []byte, n int) {
	at := c.Next
	for _, s := range c.Done {
		next := binary.AppendUvarint(raw, uint64(s.First-at))
		next = binary.AppendUvarint(next, uint64(s.Last-s.First))
		if len(next) > size {
			break
		}
		raw, at, n = next, s.Last, n+1
	}
	return raw, n
}

// Decode reads the metadata of a commit of offset. It reports false for metadata that Encode did not write for this offset.
func Decode(offset int64, metadata string) (Checkpoint, bool) {
	encoded, ours := strings.CutPrefix(metadata, magic)
	if !ours {
		return Checkpoint{}, false
	}
	raw, err := base64.RawStdEncoding.DecodeString(encoded)
	if err != nil {
		return Checkpoint{}, false
	}
	r := reader{raw: raw}
	c := Checkpoint{Next: r.number(), Reserved: r.number()}
	base, at := r.number(), c.Next
	for n := r.number(); n > 0 && !r.failed; n-- {
		o := Open{Offset: at + r.number(), Attempts: int(r.number())}
		if until := r.number(); until > 0 {
			o.Until, o.Runner = time.UnixMilli(base+until-1), Runner(r.number())
		}
		c.Open, at = append(c.Open, o), o.Offset
	}
	at = c.Next
	for n := r.number(); n > 0 && !r.failed; n-- {
		first := at + r.number()
		s := Span{first, first + r.number()}
		c.Done, at = append(c.Done, s), s.Last
	}
	c.Notes = r.notes()
	if r.failed || len(r.raw) > 0 || c.Next != offset || !c.ascending() {
		return Checkpoint{}, false
	}
	return c, true
}

// ascending reports whether offsets are in order, which overflowing numbers are not.
func (c Checkpoint) ascending() bool {
	for i, s := range c.Done {
		if s.First > s.Last || s.First < c.Next || i > 0 && s.First <= c.Done[i-1].Last {
			return false
		}
	}
	return slices.IsSortedFunc(c.Open, func(a, b Open) int { return cmp.Compare(a.Offset, b.Offset) }) &&
		(len(c.Open) == 0 || c.Open[0].Offset >= c.Next)
}

// reader reads numbers. failed says that one was missing or malformed.
type reader struct {
	raw    []byte
	failed bool
}

func (r *reader) number() int64 {
	n, size := binary.Uvarint(r.raw)
	if size <= 0 || n > 1<<62 {
		r.failed, r.raw = true, nil
		return 0
	}
	r.raw = r.raw[size:]
	return int64(n)
}
