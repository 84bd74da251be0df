package cut

import (
	"sync"
	"time"
)

// Epochs tracks a lower bound of the leader epoch under which the records of each claim were read, since Sarama does not
// return the epoch of a record. The epoch in the metadata when a claim begins is that of its first records, or an older
// one. A newer one is used only after it has been in the metadata for a while: until then the consumer may still read from
// the old leader. An epoch that is too old costs repeats after an unclean leader election; one that is too new would skip
// records. A nil Epochs knows none. It is safe for concurrent use.
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

// NewEpochs returns an Epochs that gets epochs from seen, which must not block, and uses a new epoch once seen has returned
// it for the duration after.
func NewEpochs(seen func(Partition) (epoch int32, ok bool), after time.Duration, now func() time.Time) *Epochs {
	return &Epochs{seen: seen, after: after, now: now, read: map[Partition]epochs{}}
}

// Begin must be called before the first record of a claim is read.
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

// Of returns the epoch under which the records of a partition were read until now; false if it is not known.
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
