package entrance

import "sync"

// budget bounds the memory of request bodies, of all callers and of each. It is safe for concurrent use.
type budget struct {
	all, each int // limits in bytes

	mu    sync.Mutex
	used  int
	users map[string]int // by caller; only those that use some
}

func newBudget(all, each int) *budget { return &budget{all: all, each: each, users: map[string]int{}} }

// outcome of budget.take.
type outcome int

const (
	granted      outcome = iota
	ownExhausted         // the caller uses its part
	allExhausted         // all callers together use everything
	displaced            // the visit has given way to another one
)

// take reserves n bytes for a caller, which give returns.
func (b *budget) take(caller string, n int) outcome {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.users[caller]+n > b.each:
		return ownExhausted
	case b.used+n > b.all:
		return allExhausted
	}
	b.used += n
	b.users[caller] += n
	return granted
}

func (b *budget) give(caller string, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	if b.users[caller] -= n; b.users[caller] <= 0 {
		delete(b.users, caller)
	}
}
