package think

import (
	"sync"

	lru "github.com/hashicorp/golang-lru/v2/simplelru"
)

// plus returns the sum of two usages. An unknown cost adds nothing.
func (u Usage) plus(v Usage) Usage {
	sum := Usage{InputTokens: u.InputTokens + v.InputTokens, OutputTokens: u.OutputTokens + v.OutputTokens, Cost: u.Cost}
	switch {
	case u.Cost != nil && v.Cost != nil:
		total := *u.Cost + *v.Cost
		sum.Cost = &total
	case u.Cost == nil:
		sum.Cost = v.Cost
	}
	return sum
}

// usage returns what a reply used.
func (r Reply) usage() Usage {
	return Usage{InputTokens: r.InputTokens, OutputTokens: r.OutputTokens, Cost: r.Cost}
}

// with returns the reply with another usage.
func (r Reply) with(u Usage) Reply {
	r.InputTokens, r.OutputTokens, r.Cost = u.InputTokens, u.OutputTokens, u.Cost
	return r
}

// maxSpent is the number of steps whose usage is remembered.
const maxSpent = 10_000

// spent remembers what the failed calls of a step used until it is settled. Another process does not know it. It is safe for
// concurrent use.
type spent struct {
	mu    sync.Mutex
	steps *lru.LRU[stepKey, Usage]
}

func newSpent() *spent {
	steps, err := lru.NewLRU[stepKey, Usage](maxSpent, nil)
	if err != nil {
		panic(err) // only for a size that is not positive
	}
	return &spent{steps: steps}
}

// keep remembers the usage of a step. No usage takes no place.
func (s *spent) keep(step stepKey, u Usage) {
	if u == (Usage{}) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps.Add(step, u)
}

// take returns the usage of a step and forgets it.
func (s *spent) take(step stepKey) Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, _ := s.steps.Peek(step)
	s.steps.Remove(step)
	return u
}
