package slack

import (
	"sync"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
)

// maxPassed is how many events are remembered.
const maxPassed = 4096

// passed remembers the latest events that the receiver has taken, so that the second event of a text, or a retry, does not count
// against the rate limit of the person. It is a shortcut: the receiver recognises repeats itself. A message that was passed
// without a mention is passed again with one, because a policy may have dropped it.
type passed struct {
	mu    sync.Mutex
	known map[key]struct{}
	ring  []key
	next  int
}

type key struct {
	event     string
	mentioned bool
}

func newPassed() *passed { return &passed{known: map[key]struct{}{}} }

func (p *passed) has(in adapter.Inbound) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, mentioned := p.known[key{in.Event, true}]
	_, same := p.known[key{in.Event, in.Mentioned}]
	return mentioned || same
}

func (p *passed) add(in adapter.Inbound) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := key{in.Event, in.Mentioned}
	if len(p.ring) < maxPassed {
		p.ring = append(p.ring, k)
	} else {
		delete(p.known, p.ring[p.next])
		p.ring[p.next] = k
		p.next = (p.next + 1) % maxPassed
	}
	p.known[k] = struct{}{}
}
