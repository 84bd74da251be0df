package archive

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/topics"
)

// The size of a transaction.
const (
	chunkBytes   = 900 << 10 // batches of this size are accepted by topics with the default limit
	chunkRecords = 5000
)

// copying is the copy of one topic: where its records are, and where they go to.
type copying struct {
	topic   topic
	gone    topicID // of the topic that was deleted before
	from    string  // the name in the source
	spans   []span
	readers map[reader]positions
	tables  []string // the groups that have a table
	to      string
	parts   int32
	rehash  bool // to the partitions of their keys; otherwise to those where they are
}

// progress is how far a copy is, and what is known of its result. It is a value of the journal.
type progress struct {
	ID      topicID `json:"id"`
	Spans   []span  `json:"spans"` // of the source: what is copied, or was copied last
	Segment int     `json:"segment"`
	Next    int64   `json:"next"`
	Done    bool    `json:"done"`
	// Checked says that the copy was read and has what was written to it.
	Checked bool `json:"checked"`
	// Ends are the offsets behind the last record that was written, by partition. What others write behind it is not a part of the copy.
	Ends []int64 `json:"ends"`
	// Firsts are the offsets of the first records that a group has not read, by partition.
	Firsts map[reader]map[int32]int64 `json:"firsts"`
	Counts []int64                    `json:"counts"`
	Sums   []uint32                   `json:"sums"`
}

// segment is a part of a partition's log in which all records were read by the same groups.
type segment struct {
	partition int32
	span
	unread []byte // for each group in order: 0 if it has read the records, otherwise 1
}

// segments returns what a copy reads, in this order: first the records that the first group has read, of these first those that the
// second group has read, and so on. Within a partition that is the order of the log. So, when several partitions become one, the records
// of a key keep their order, and those of the first group are on one side of one offset. Other groups may be behind in other partitions:
// then some records that they have read are behind the first one that they have not, and are read again.
func (c *copying) segments() (all []segment) {
	groups := c.order()
	for n, s := range c.spans {
		cuts := []int64{s.Start, s.End}
		for _, at := range c.readers {
			cuts = append(cuts, min(max(at.of(int32(n), s.Start), s.Start), s.End))
		}
		slices.Sort(cuts)
		cuts = slices.Compact(cuts)
		for i := range len(cuts) - 1 {
			next := segment{int32(n), span{cuts[i], cuts[i+1]}, make([]byte, len(groups))}
			for g, group := range groups {
				if c.readers[group].of(int32(n), s.Start) <= cuts[i] {
					next.unread[g] = 1
				}
			}
			all = append(all, next)
		}
	}
	slices.SortStableFunc(all, func(a, b segment) int { return bytes.Compare(a.unread, b.unread) })
	return all
}

// order returns the groups, first those for which a record that is read again costs most: workers in share groups, which make a call
// again, and last groups with a table, which know what they have handled.
func (c *copying) order() []reader {
	rank := func(r reader) int {
		switch {
		case r.share:
			return 0
		case !slices.Contains(c.tables, r.group):
			return 1
		}
		return 2
	}
	return slices.SortedFunc(maps.Keys(c.readers), func(a, b reader) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.group, b.group))
	})
}

// of returns the offset in a partition; a group that has committed none there starts at the oldest record.
func (p positions) of(partition int32, oldest int64) int64 {
	if at, ok := p[partition]; ok {
		return at.At
	}
	return oldest
}

// target returns the partition of a record.
func (c *copying) target(r *kgo.Record) int32 {
	if c.rehash && r.Key != nil {
		return codec.PartitionOf(string(r.Key), c.parts)
	}
	return r.Partition % c.parts
}

// copied returns the record to write. An ID that is derived from where a record was written must stay the same, and an offset of
// another topic is not one of its copy.
func (c *copying) copied(r *kgo.Record) *kgo.Record {
	out := &kgo.Record{Topic: c.to, Partition: c.target(r), Key: r.Key, Value: r.Value, Timestamp: r.Timestamp}
	named, open := strings.HasSuffix(c.topic.Name, "-table"), c.open(r)
	for _, h := range r.Headers {
		switch h.Key {
		case topics.HeaderID: // an odd one may not count as an ID
			named = named || len(h.Value) > 0 && len(h.Value) <= 256 && !bytes.ContainsFunc(h.Value, func(r rune) bool { return r <= ' ' || r > '~' })
		case topics.HeaderFirstAt, "turntable.source.offset":
			named = named || len(h.Value) > 0
		case topics.HeaderAnswersFrom:
			h.Value, open = []byte("0"), false
		}
		out.Headers = append(out.Headers, h)
	}
	if !named {
		at := strconv.Itoa(int(r.Partition)) + "/" + strconv.FormatInt(r.Offset, 10)
		out.Headers = append(out.Headers, kgo.RecordHeader{Key: topics.HeaderFirstAt, Value: []byte(at)})
	}
	if open {
		out.Headers = append(out.Headers, kgo.RecordHeader{Key: topics.HeaderAnswersFrom, Value: []byte("0")})
	}
	return out
}

// open reports whether a share group may have begun with a record. Brokers forget how often they have delivered it, so a worker is told
// to look for an answer before it makes a call.
func (c *copying) open(r *kgo.Record) bool {
	for group, at := range c.readers {
		if group.share && r.Offset >= at.of(r.Partition, 0) {
			return true
		}
	}
	return false
}

// chunk is what is written in the next transaction.
type chunk struct {
	records []*kgo.Record
	origins []origin
	bytes   int
}

// origin is where a record was.
type origin struct {
	partition int32
	offset    int64
}

// copy copies a topic, or continues. It returns when all is written.
func (j *journal) copy(ctx context.Context, src source, c copying, result *Result) (p progress, err error) {
	key := keyCopy + c.to
	if _, err = j.get(key, &p); err != nil {
		return p, err
	}
	if err := j.at("ready " + c.to); err != nil {
		return p, err
	}
	id, err := j.ready(ctx, &c, p.ID)
	if err != nil || p.Done && p.ID == id {
		return p, err
	}
	if p.ID != id { // it is new, or its predecessor was deleted
		p = progress{
			ID: id, Spans: c.spans, Ends: make([]int64, c.parts), Counts: make([]int64, c.parts), Sums: make([]uint32, c.parts),
			Firsts: map[reader]map[int32]int64{},
		}
		for r := range c.readers {
			p.Firsts[r] = map[int32]int64{}
		}
		if err := j.write(ctx, key, func() any { return p }); err != nil {
			return p, err
		}
	}
	var next chunk
	c.spans = p.Spans
	segments := c.segments()
	begun := p.Next
	for n := p.Segment; n < len(segments); n++ {
		s := segments[n]
		if err := src.read(ctx, c.from, s.partition, max(s.Start, begun), s.End, func(r *kgo.Record) error {
			p.Segment, p.Next = n, r.Offset+1
			next.records = append(next.records, c.copied(r))
			next.origins = append(next.origins, origin{r.Partition, r.Offset})
			if next.bytes += len(r.Key) + len(r.Value) + 64; next.bytes < chunkBytes && len(next.records) < chunkRecords {
				return nil
			}
			return j.writeChunk(ctx, key, &c, &p, &next, result)
		}); err != nil {
			return p, err
		}
		begun = 0
	}
	p.Segment, p.Next, p.Done = len(segments), 0, true
	if err := j.writeChunk(ctx, key, &c, &p, &next, result); err != nil {
		return p, err
	}
	result.Topics++
	j.log.Info("topic written", zap.String("topic", c.to), zap.Int64s("records", p.Counts))
	return p, nil
}

func (j *journal) writeChunk(ctx context.Context, key string, c *copying, p *progress, next *chunk, result *Result) error {
	if err := j.at("chunk"); err != nil {
		return err
	}
	err := j.write(ctx, key, func() any {
		for i, r := range next.records {
			p.add(r)
			p.Ends[r.Partition] = r.Offset + 1
			from := next.origins[i]
			for group, at := range c.readers {
				firsts, n := p.Firsts[group], r.Partition
				unread := from.offset >= at.of(from.partition, 0)
				if _, behind := firsts[n]; !behind && unread {
					firsts[n] = r.Offset
				} else if behind && !unread {
					result.Repeated++
				}
			}
		}
		return *p
	}, next.records...)
	result.Records += int64(len(next.records))
	*next = chunk{}
	return err
}

// add counts a record.
func (p *progress) add(r *kgo.Record) {
	p.Counts[r.Partition]++
	p.Sums[r.Partition] = crc32.Update(p.Sums[r.Partition], crc32.MakeTable(crc32.Castagnoli), content(nil, r))
}

// placed returns where the groups are in a copy that is done: at the first record that they have not read, or behind the last one of
// the copy. Records that others have written behind it are read.
func (c *copying) placed(p progress) map[reader]positions {
	all := map[reader]positions{}
	for group, was := range c.readers {
		all[group] = positions{}
		for n, end := range p.Ends {
			at, behind := p.Firsts[group][int32(n)]
			if !behind {
				at = end
			}
			from := int32(n)
			if _, ok := was[from]; !ok {
				from = slices.Min(slices.Collect(maps.Keys(was)))
			}
			all[group][int32(n)] = position{at, was[from].Metadata}
		}
	}
	return all
}

// spans returns the offsets of what was written.
func (p *progress) spans() []span {
	all := make([]span, len(p.Ends))
	for n, end := range p.Ends {
		all[n].End = end
	}
	return all
}

// check reads a copy once and compares it with what was written.
func (j *journal) check(ctx context.Context, c *copying, p *progress) error {
	if p.Checked {
		return nil
	}
	is := progress{Counts: make([]int64, c.parts), Sums: make([]uint32, c.parts)}
	for n, s := range p.spans() {
		if err := j.read(ctx, c.to, int32(n), s.Start, s.End, func(r *kgo.Record) error { is.add(r); return nil }); err != nil {
			return err
		}
	}
	if !slices.Equal(is.Counts, p.Counts) || !slices.Equal(is.Sums, p.Sums) {
		return fmt.Errorf("%w: %s is not what was written to it: stop the programs that write to it, delete this topic alone, and run the "+
			"same command again, which writes it again", ErrForeign, c.to)
	}
	p.Checked = true
	return j.write(ctx, keyCopy+c.to, func() any { return *p })
}

// intact returns an error if a copy that was checked is another topic now, or has lost records.
func (j *journal) intact(ctx context.Context, c *copying, p progress) error {
	listed, err := j.topicsOf(ctx, c.to)
	if err != nil {
		return err
	}
	has := []topic{{Name: c.to, Parts: make([]span, c.parts)}}
	if listed[c.to].ID == p.ID {
		err = j.ends(ctx, has)
	}
	for n, end := range p.Ends {
		if s := has[0].Parts[n]; err == nil && (s.Start > 0 || s.End < end || listed[c.to].ID != p.ID) {
			err = fmt.Errorf("%w: %s/%d is not the copy that this call has made: another program has deleted or changed it, and nothing "+
				"more is deleted", ErrForeign, c.to, n)
		}
	}
	return err
}
