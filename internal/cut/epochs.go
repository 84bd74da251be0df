package cut

import (
	"sync"
	"time"
)

// Epochs tells under which leader epoch the records of each claim were read, at least. Sarama does not tell the epoch of
// a record. The epoch that the metadata show when a claim begins is that of its first records, or older than theirs. A
// new one counts only once it has been seen for a while: until then the old leader may still be read. An epoch that is
// too old costs repeats after an unclean election; one that is too new would skip records. It is safe for concurrent use.
type Epochs struct {
	seen  func(Partition) (epoch int32, ok bool) // in the metadata
	after time.Duration
	now   func() time.Time

	mu   sync.Mutex
	read map[Partition]epochs
}

type epochs struct {
	sure, next int32
	since      time.Time // when next was first seen
}

// NewEpochs returns an Epochs that learns from seen, which must not block, and takes a new epoch for the one that is read
// under when it was seen for the duration after.
func NewEpochs(seen func(Partition) (epoch int32, ok bool), after time.Duration, now func() time.Time) *Epochs {
	return &Epochs{seen: seen, after: after, now: now, read: map[Partition]epochs{}}
}

// Begin is called before the first record of a claim is read.
func (e *Epochs) Begin(p Partition) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if now, ok := e.seen(p); ok {
		e.read[p] = epochs{sure: now, next: now}
	} else {
		delete(e.read, p)
	}
}

// Of returns the epoch under which the records of a partition were read until now; false where it is not known.
func (e *Epochs) Of(p Partition) (int32, bool) {
	if e == nil {
		return 0, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	known, ok := e.read[p]
	if !ok {
		return 0, false
	}
	now, ok := e.seen(p)
	switch {
	case !ok || now <= known.sure:
	case now != known.next:
		known.next, known.since = now, e.now()
	case e.now().Sub(known.since) >= e.after:
		known.sure = now
	}
	e.read[p] = known
	return known.sure, true
}
