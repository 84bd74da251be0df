package consumer

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/IBM/sarama"

	"github.com/turntable-streams/turntable/processors/worker/internal/consumer/progress"
)

// simBroker is the coordinator of the group of a simulation, and the log of its topic. Its fields are guarded by the lock of
// the simulation.
type simBroker struct {
	*simulation
	ends     []int64 // the high watermark of each partition
	appended chan struct{}
	commits  map[at]progress.Commit
	limit    int // of the metadata

	generation int32
	members    map[string]*simMember
	owners     map[int32]string // of the last generation
	joining    bool             // a rebalance waits for members
	deadline   *time.Timer      // of that rebalance
	ids        int
}

// simMember is a member as its coordinator sees it.
type simMember struct {
	id      string
	waiting chan simAssignment // nil unless it has asked to join
	expiry  *time.Timer
}

// simAssignment is the answer to a join.
type simAssignment struct {
	membership
	partitions []int32
	starts     map[int32]int64
}

// The scaled times of a group.
const (
	simSession   = 3 * time.Second
	simRebalance = 2 * time.Second
	simHandover  = 6 * time.Second
	simHeartbeat = 300 * time.Millisecond
)

func (b *simBroker) put(partition int32, n int) {
	b.ends[partition] += int64(n)
	close(b.appended)
	b.appended = make(chan struct{})
}

// join asks for a place in the next generation.
func (b *simBroker) join(id string) (*simMember, <-chan simAssignment) {
	m := b.members[id]
	if m == nil {
		b.ids++
		m = &simMember{id: fmt.Sprintf("member-%d", b.ids)}
		m.expiry = time.AfterFunc(simSession, func() { b.locked(func() { b.expire(m) }) })
		b.members[m.id] = m
	}
	m.expiry.Stop() // a member that joins is not silent
	m.waiting = make(chan simAssignment, 1)
	answer := m.waiting
	b.rebalance()
	return m, answer
}

// expire removes a member that was silent for too long.
func (b *simBroker) expire(m *simMember) {
	if b.members[m.id] == m && m.waiting == nil {
		b.leave(m.id)
	}
}

func (b *simBroker) leave(id string) {
	if m := b.members[id]; m != nil {
		m.expiry.Stop()
		delete(b.members, id)
		b.rebalance()
	}
}

// rebalance begins a rebalance if there is none, and ends it once all members have joined.
func (b *simBroker) rebalance() {
	if !b.joining {
		b.joining = true
		b.deadline = time.AfterFunc(simRebalance, func() { b.locked(b.assign) })
	}
	for _, m := range b.members {
		if m.waiting == nil {
			return
		}
	}
	b.assign()
}

// assign begins a generation with the members that have joined.
func (b *simBroker) assign() {
	if !b.joining {
		return
	}
	b.deadline.Stop()
	b.joining = false
	b.generation++
	maps.DeleteFunc(b.members, func(_ string, m *simMember) bool {
		if m.waiting == nil {
			m.expiry.Stop()
		}
		return m.waiting == nil
	})
	ids := slices.Sorted(maps.Keys(b.members))
	if len(ids) == 0 {
		return
	}
	r := b.random("assign", int(b.generation))
	assignments := map[string]simAssignment{}
	var without []string // members without a partition so far
	for _, i := range r.Perm(len(ids)) {
		without = append(without, ids[i])
	}
	for i, p := range r.Perm(len(b.ends)) {
		p := int32(p)
		owner := ids[r.IntN(len(ids))]
		if _, stays := b.members[b.owners[p]]; stays && r.IntN(2) == 0 {
			owner = b.owners[p]
		}
		if len(without) >= len(b.ends)-i {
			owner = without[0]
		}
		without = slices.DeleteFunc(without, func(id string) bool { return id == owner })
		b.owners[p] = owner
		a := assignments[owner]
		if a.starts == nil {
			a.starts = map[int32]int64{}
		}
		a.partitions = append(a.partitions, p)
		a.starts[p] = sarama.OffsetOldest
		if c, ok := b.commits[at{simTopic, p}]; ok {
			a.starts[p] = c.Offset
		}
		assignments[owner] = a
	}
	b.note("generation %d: %v", b.generation, b.owners)
	for _, id := range ids {
		a := assignments[id]
		a.membership = membership{id, b.generation}
		b.members[id].waiting <- a
		b.members[id].waiting = nil
		b.members[id].expiry.Reset(simSession)
	}
}

// seen checks the membership of a request.
func (b *simBroker) seen(as membership) error {
	m := b.members[as.id]
	switch {
	case m == nil:
		return sarama.ErrUnknownMemberId
	case as.generation != b.generation:
		return sarama.ErrIllegalGeneration
	}
	if m.waiting == nil {
		m.expiry.Reset(simSession)
	}
	return nil
}

func (b *simBroker) heartbeat(as membership) error {
	err := b.seen(as)
	if err == nil && b.joining {
		err = sarama.ErrRebalanceInProgress
	}
	return err
}

// commit stores checkpoints and checks that all that they call settled is answered.
func (b *simBroker) commit(as membership, points map[at]progress.Checkpoint) error {
	if err := b.seen(as); err != nil {
		return err
	}
	for where, c := range points {
		b.judgeCommit(where, c)
		b.note("commit by %s in generation %d of %d: next %d, done %v, open %v, reserved %d, %d notes", as.id, as.generation,
			where.id, c.Next, c.Done, c.Open, c.Reserved, len(c.Notes))
		b.commits[where] = progress.Commit{Offset: c.Next, Metadata: c.Encode(b.limit)}
	}
	return nil
}

func (b *simBroker) describe() map[progress.Runner]bool {
	members := map[progress.Runner]bool{}
	for id := range b.members {
		members[progress.RunnerOf(id)] = true
	}
	return members
}

func (b *simBroker) notes() (notes []progress.Note) {
	for _, commit := range b.commits {
		c, _ := progress.Decode(commit.Offset, commit.Metadata)
		notes = append(notes, c.Notes...)
	}
	return notes
}

// random returns the numbers of one decision of the simulation: they do not depend on the order of goroutines.
func (s *simulation) random(of string, n int) *rand.Rand {
	h := uint64(n)
	for _, c := range []byte(of) {
		h = h*1099511628211 + uint64(c)
	}
	return rand.New(rand.NewPCG(s.seed, h))
}
