package cut

import "sync"

// Attempt identifies the record or deadline of a partition whose handler has failed.
type Attempt struct {
	Offset int64
	Key    string // of a deadline; empty for a record
}

// Attempts counts how often handlers have failed. It has one count per partition of a topic, that of the record that the
// partition waits for. The count of a record is committed with the record's offset (Listing). A nil Attempts has no counts.
// It is safe for concurrent use.
type Attempts struct {
	mu     sync.Mutex
	counts map[Partition]attempts
}

type attempts struct {
	Attempt
	failed int
}

// NewAttempts returns an Attempts without counts.
func NewAttempts() *Attempts { return &Attempts{counts: map[Partition]attempts{}} }

// Of returns how often the handler of a record or deadline has failed.
func (a *Attempts) Of(p Partition, of Attempt) int {
	if a == nil {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.counts[p]; c.Attempt == of {
		return c.failed
	}
	return 0
}

// Set replaces the count of a partition.
func (a *Attempts) Set(p Partition, of Attempt, failed int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counts[p] = attempts{of, failed}
}
