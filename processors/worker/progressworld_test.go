package worker_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/turntable-streams/turntable/processors/worker/internal/consumer/progress"
	"pgregory.net/rapid"
)

// world is a partition with its records and commit, and members of the group that own it one after another.
type world struct {
	t       *rapid.T
	now     time.Time
	records []int64
	limit   int // of the metadata
	offset  int64
	meta    string
	members []*member
	owner   *member

	notes []progress.Note

	restarts int
	started  map[int64]bool
	settled  map[int64]bool
}

type member struct {
	id      progress.Runner // changes when the member restarts
	p       *progress.Partition
	next    int // the next record to read
	pending []int64
	running map[int64]bool
	settled map[int64]bool
	// told are the running records whose handover was committed.
	told map[int64]bool
}

const handover = time.Minute

func newWorld(t *rapid.T) *world {
	w := &world{
		t: t, now: time.UnixMilli(1_000_000), offset: -1, started: map[int64]bool{}, settled: map[int64]bool{},
		limit: rapid.SampledFrom([]int{progress.MaxMetadata, progress.MaxMetadata, 120, 0}).Draw(t, "limit"),
	}
	offset := rapid.Int64Range(0, 3).Draw(t, "first")
	for range rapid.IntRange(1, 25).Draw(t, "records") {
		w.records = append(w.records, offset)
		offset += rapid.Int64Range(1, 3).Draw(t, "gap")
	}
	for i := range 3 {
		w.members = append(w.members, &member{})
		w.restart(w.members[i])
	}
	w.claim(w.members[0])
	return w
}

func (w *world) restart(m *member) {
	w.restarts++
	m.id = progress.RunnerOf(fmt.Sprint(w.restarts))
	m.p = progress.New(4, handover)
	m.running, m.settled, m.told, m.pending = map[int64]bool{}, map[int64]bool{}, map[int64]bool{}, nil
}

func (w *world) claim(m *member) {
	w.owner = m
	end := w.records[len(w.records)-1] + 1
	for _, offset := range m.p.Claim(progress.Commit{Offset: w.offset, Metadata: w.meta, End: end}, w.now) {
		delete(m.running, offset)
	}
	m.told = map[int64]bool{}
	m.pending = nil
	m.next, _ = slices.BinarySearch(w.records, w.offset)
}

// move gives the partition to another member, or back to the same one. The last commit of the old owner may fail.
func (w *world) move(to *member, commit bool) {
	from := w.owner
	w.now = w.now.Add(time.Millisecond) // a rebalance takes longer
	from.p.End(from.id, w.now)
	if commit {
		w.commit(true)
		c, _ := progress.Decode(w.offset, w.meta)
		for _, o := range c.Open {
			from.told[o.Offset] = from.running[o.Offset]
		}
	}
	w.claim(to)
	if !commit && to != from {
		w.expire(from, true)
	}
}

func (w *world) crash(m *member) {
	w.restart(m)
	if m == w.owner {
		w.claim(w.pick("next owner"))
	}
}

func (w *world) pick(name string) *member { return rapid.SampledFrom(w.members).Draw(w.t, name) }

// read reads a record and starts it if it may be started.
func (w *world) read() {
	m := w.owner
	if m.next == len(w.records) {
		return
	}
	offset := w.records[m.next]
	m.next++
	m.p.Read(offset)
	m.pending = append(m.pending, offset)
	w.start(offset)
}

// start starts a record that was read, if it may be started.
func (w *world) start(offset int64) {
	m := w.owner
	action := m.p.Decide(offset, w.now)
	if action == progress.Start && !m.p.MayStart(offset) {
		return
	}
	m.pending = slices.DeleteFunc(m.pending, func(o int64) bool { return o == offset })
	switch action {
	case progress.Skip:
		if !w.settled[offset] {
			w.t.Fatalf("record %d is skipped but not settled", offset)
		}
	case progress.Join:
		if !m.running[offset] {
			w.t.Fatalf("record %d is joined but does not run", offset)
		}
	case progress.Start:
		w.begin(m, offset)
	}
}

func (w *world) begin(m *member, offset int64) {
	if m.running[offset] {
		w.t.Fatalf("record %d is started twice by member %d", offset, m.id)
	}
	for _, other := range w.members {
		if other.running[offset] && other.told[offset] && w.limit == progress.MaxMetadata {
			w.t.Fatalf("record %d is started by member %d during the handover of member %d", offset, m.id, other.id)
		}
	}
	c, _ := progress.Decode(w.offset, w.meta)
	committed := offset < w.offset || slices.ContainsFunc(c.Done, func(s progress.Span) bool {
		return s.First <= offset && offset <= s.Last
	})
	if committed || m.settled[offset] {
		w.t.Fatalf("record %d is started again although it is settled", offset)
	}
	_, repeated := m.p.Start(offset)
	if w.started[offset] && !repeated {
		w.t.Fatalf("record %d is started again without being marked as repeated", offset)
	}
	w.started[offset], m.running[offset] = true, true
}

// end ends a running call of any member, perhaps after its partition has moved.
func (w *world) end(settle bool) {
	m := w.pick("member")
	if len(m.running) == 0 {
		return
	}
	offset := rapid.SampledFrom(sorted(m.running)).Draw(w.t, "call")
	delete(m.running, offset)
	if settle {
		w.settled[offset], m.settled[offset] = true, true
		if until, ok := m.p.Told(offset); ok {
			w.notes = append(w.notes, progress.Note{Offset: offset, Until: until})
		}
		m.p.Settle(offset)
		return
	}
	m.p.Release(offset, w.now.Add(time.Second))
}

// commit commits the owner's checkpoint. The acknowledgement may be lost.
func (w *world) commit(acknowledge bool) {
	c, ok := w.owner.p.Checkpoint()
	if !ok {
		return
	}
	if c.Next < w.offset {
		w.t.Fatalf("the commit moves back from %d to %d", w.offset, c.Next)
	}
	w.offset, w.meta = c.Next, c.Encode(w.limit)
	if len(w.meta) > w.limit {
		w.t.Fatalf("metadata of %d bytes", len(w.meta))
	}
	for _, offset := range w.records {
		done := offset < c.Next || slices.ContainsFunc(c.Done, func(s progress.Span) bool {
			return s.First <= offset && offset <= s.Last
		})
		if done && !w.settled[offset] {
			w.t.Fatalf("record %d is committed but not settled", offset)
		}
	}
	if acknowledge {
		w.owner.p.Acknowledge(c)
	} else {
		w.owner.p.Retry(progress.Now)
	}
}

// confirm passes the notes of all members to the owner.
func (w *world) confirm() {
	for _, n := range w.notes {
		w.owner.p.Confirm(n)
	}
}

func (w *world) tick(d time.Duration) {
	w.now = w.now.Add(d)
	for _, m := range w.members {
		w.expire(m, false)
	}
	w.owner.p.Depart(func(r progress.Runner) bool {
		return slices.ContainsFunc(w.members, func(m *member) bool { return m.id == r })
	}, w.now)
	w.owner.pending = append(w.owner.pending, w.owner.p.Due(w.now)...)
}

func (w *world) expire(m *member, all bool) {
	for _, offset := range m.p.Expire(w.now, all) {
		delete(m.running, offset)
	}
}

// finish lets the owner handle everything that is left.
func (w *world) finish() {
	for range 4 * len(w.records) {
		w.tick(handover)
		w.read()
		w.commit(true)
		for _, offset := range slices.Clone(w.owner.pending) {
			w.start(offset)
		}
		for _, offset := range sorted(w.owner.running) {
			delete(w.owner.running, offset)
			w.settled[offset] = true
			w.owner.p.Settle(offset)
		}
	}
	w.commit(true)
	last := w.records[len(w.records)-1] + 1
	c, _ := progress.Decode(w.offset, w.meta)
	if w.offset != last || len(c.Done) > 0 || len(c.Open) > 0 {
		w.t.Fatalf("at the end %d of %d is committed, and %+v", w.offset, last, c)
	}
}

func sorted(set map[int64]bool) []int64 {
	var offsets []int64
	for o := range set {
		offsets = append(offsets, o)
	}
	slices.Sort(offsets)
	return offsets
}
