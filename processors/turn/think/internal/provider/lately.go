package provider

import (
	"sync"

	lru "github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/turntable-streams/turntable/processors/turn/think/internal/toolcall"
	"github.com/turntable-streams/turntable/topics"
)

const (
	latelyReplies = 256
	latelyBytes   = 64 << 10 // of a state; a larger one is not kept
)

// lately keeps the states of the last replies with calls, for turns of other implementations that lose the metadata of messages.
// It is safe for concurrent use.
type lately struct {
	mu     sync.Mutex
	states *lru.LRU[string, topics.Raw]
}

func newLately() *lately {
	states, err := lru.NewLRU[string, topics.Raw](latelyReplies, nil)
	if err != nil {
		panic(err) // only for a size that is not positive
	}
	return &lately{states: states}
}

// keyOf names a reply by its session and its calls.
func keyOf(session string, calls []string) string {
	return toolcall.Digest(append([]string{"state", session}, calls...)...)
}

func (l *lately) keep(session string, calls []string, state topics.Raw) {
	if len(calls) == 0 || len(state) > latelyBytes {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.states.Add(keyOf(session, calls), state)
}

// of returns the state of the reply that has the calls of a message; nil if it is not known.
func (l *lately) of(session string, blocks []Block) topics.Raw {
	var calls []string
	for _, b := range blocks {
		if b.Kind == Call {
			calls = append(calls, b.ID, b.Name)
		}
	}
	if calls == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	state, _ := l.states.Get(keyOf(session, calls))
	return state
}
