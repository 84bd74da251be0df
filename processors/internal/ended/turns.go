// Package ended tells workers which turns have ended, so that they neither start nor continue work that nobody waits for.
//
// A turn ends with one record of message-output, whatever ended it: an answer, an error, a deadline, a cancellation or a
// purge. Its turntable.id begins with the turn's id. The ids of the steps and calls of the turn begin with it too.
package ended

import (
	"context"
	"errors"
	"strings"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// ErrTurn is the cause with which a context of Watch ends when its turn ends.
var ErrTurn = errors.New("the turn has ended")

// remembered is how many ended turns are remembered. Repeats of older steps are started again and answered too late.
const remembered = 100_000

// Turns remembers ended turns and cancels their work. It is safe for concurrent use.
type Turns struct {
	mu      sync.Mutex
	ended   *lru.LRU[string, struct{}]
	running map[string]map[*work]struct{} // by turn
}

// work is one running call of a model or a tool.
type work struct{ cancel context.CancelCauseFunc }

// New returns a memory without turns.
func New() *Turns {
	ended, err := lru.NewLRU[string, struct{}](remembered, nil)
	if err != nil {
		panic(err) // only for a size that is not positive
	}
	return &Turns{ended: ended, running: map[string]map[*work]struct{}{}}
}

// Observe takes a record of message-output. It cancels the running work of the record's turn. Records without a
// turntable.id, such as those of other pipelines, are ignored.
func (t *Turns) Observe(r processors.Inbound) {
	turn := TurnOf(string(r.Header(topics.HeaderID)))
	if turn == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended.Add(turn, struct{}{})
	for w := range t.running[turn] {
		w.cancel(ErrTurn)
	}
}

// Watch returns a context that ends, with cause ErrTurn, when the turn of a step or call has its output; at once if it has
// it already. id is the turntable.id of the step's or call's record; without one, the context ends only with ctx. The
// caller must call stop when the work has ended.
func (t *Turns) Watch(ctx context.Context, id string) (watched context.Context, stop func()) {
	watched, cancel := context.WithCancelCause(ctx)
	turn := TurnOf(id)
	if turn == "" {
		return watched, func() { cancel(nil) }
	}
	w := &work{cancel}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended.Contains(turn) {
		cancel(ErrTurn)
		return watched, func() {}
	}
	if t.running[turn] == nil {
		t.running[turn] = map[*work]struct{}{}
	}
	t.running[turn][w] = struct{}{}
	return watched, func() {
		cancel(nil)
		t.mu.Lock()
		defer t.mu.Unlock()
		if delete(t.running[turn], w); len(t.running[turn]) == 0 {
			delete(t.running, turn)
		}
	}
}

// TurnOf returns the turn's part of an id, or "" if it has no other part: the id of a foreign record names no turn.
func TurnOf(id string) string {
	turn, _, ok := strings.Cut(id, "/")
	if !ok {
		return ""
	}
	return turn
}
