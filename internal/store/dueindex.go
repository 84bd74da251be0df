package store

import (
	"math"
	"sync"
)

// DueEntry is one deadline that is due.
type DueEntry struct {
	Key string
	Ms  int64 // since the epoch
}

// DueIndex is the due-index of one partition: it holds one deadline per key and returns those that are due, earliest first,
// equal ones by key. It is safe for concurrent use: the partition's goroutine writes, the pump of its timer claim pops.
// Set and Remove cost O(log n), PopDue O(due log n), which is one comparison if nothing is due. Use NewIndex.
type DueIndex struct {
	mu    sync.Mutex
	heap  []dueNode        // a heap with four children per node
	slots []dueSlot        // the keys of the nodes; nodes move, slots do not
	free  []int32          // slots without a node
	of    map[string]int32 // the slot of a key
}

type dueNode struct {
	ms   int64
	slot int32
}

type dueSlot struct {
	key string
	pos int32 // of its node in the heap
}

const (
	children = 4
	// spareSlots is the most slots that an index keeps for reuse when it becomes empty.
	spareSlots = 1024
)

// NewDueIndex returns an empty index.
func NewDueIndex() *DueIndex { return &DueIndex{of: map[string]int32{}} }

// Set replaces the deadline of key by ms, in milliseconds since the epoch. A key that PopDue has returned is armed again,
// even if ms is unchanged.
func (x *DueIndex) Set(key string, ms int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s, ok := x.of[key]; ok {
		pos := x.slots[s].pos
		x.heap[pos].ms = ms
		x.fix(int(pos))
		return
	}
	s := x.take(key)
	x.of[key] = s
	x.heap = append(x.heap, dueNode{ms: ms, slot: s})
	x.up(len(x.heap) - 1)
}

// Remove removes the deadline of key, if it has one.
func (x *DueIndex) Remove(key string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s, ok := x.of[key]; ok {
		x.drop(int(x.slots[s].pos))
	}
}

// PopDue removes and returns the deadlines that are not after now, in milliseconds since the epoch: at most limit of them,
// none if limit is not positive. A key is returned again only after Set is called for it, or after the index is rebuilt.
func (x *DueIndex) PopDue(now int64, limit int) []DueEntry {
	x.mu.Lock()
	defer x.mu.Unlock()
	var due []DueEntry
	for len(due) < limit && len(x.heap) > 0 && x.heap[0].ms <= now {
		due = append(due, DueEntry{Key: x.slots[x.heap[0].slot].key, Ms: x.heap[0].ms})
		x.drop(0)
	}
	return due
}

// Next returns the earliest deadline; ok is false if the index is empty.
func (x *DueIndex) Next() (ms int64, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.heap) == 0 {
		return 0, false
	}
	return x.heap[0].ms, true
}

// Len returns the number of keys with a deadline; those that PopDue has returned do not count.
func (x *DueIndex) Len() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.heap)
}

func (x *DueIndex) take(key string) int32 {
	if n := len(x.free); n > 0 {
		s := x.free[n-1]
		x.free = x.free[:n-1]
		x.slots[s].key = key
		return s
	}
	if len(x.slots) == math.MaxInt32 {
		panic("timer: a due-index holds at most 2147483647 keys")
	}
	x.slots = append(x.slots, dueSlot{key: key})
	return int32(len(x.slots) - 1)
}

func (x *DueIndex) drop(pos int) {
	s := x.heap[pos].slot
	delete(x.of, x.slots[s].key)
	x.slots[s].key = ""
	x.free = append(x.free, s)
	last := len(x.heap) - 1
	moved := x.heap[last]
	x.heap = x.heap[:last]
	if pos < last {
		x.put(pos, moved)
		x.fix(pos)
	}
	if last == 0 && len(x.slots) > spareSlots {
		// A map never shrinks: release the memory of a peak.
		x.heap, x.slots, x.free, x.of = nil, nil, nil, map[string]int32{}
	}
}

func (x *DueIndex) put(pos int, n dueNode) {
	x.heap[pos] = n
	x.slots[n.slot].pos = int32(pos)
}

func (x *DueIndex) before(a, b dueNode) bool {
	if a.ms != b.ms {
		return a.ms < b.ms
	}
	return x.slots[a.slot].key < x.slots[b.slot].key
}

func (x *DueIndex) fix(pos int) {
	if !x.up(pos) {
		x.down(pos)
	}
}

// up moves the node at pos towards the root and reports whether it moved.
func (x *DueIndex) up(pos int) bool {
	n, start := x.heap[pos], pos
	for pos > 0 {
		parent := (pos - 1) / children
		if !x.before(n, x.heap[parent]) {
			break
		}
		x.put(pos, x.heap[parent])
		pos = parent
	}
	x.put(pos, n)
	return pos != start
}

func (x *DueIndex) down(pos int) {
	n := x.heap[pos]
	for {
		first := pos*children + 1
		if first >= len(x.heap) {
			break
		}
		least := first
		for c := first + 1; c < min(first+children, len(x.heap)); c++ {
			if x.before(x.heap[c], x.heap[least]) {
				least = c
			}
		}
		if !x.before(x.heap[least], n) {
			break
		}
		x.put(pos, x.heap[least])
		pos = least
	}
	x.put(pos, n)
}
