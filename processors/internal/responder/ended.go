package responder

import (
	"context"
	"errors"
	"strings"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// ErrTurnEnded is the cause with which a context of Watch ends when its turn ends.
var ErrTurnEnded = errors.New("the turn has ended")

// rememberedTurns is how many ended turns are remembered. Repeats of older steps are started again and answered too late.
const rememberedTurns = 100_000

// EndedTurns remembers ended turns and cancels their work, so that workers neither start nor continue work whose turn has ended.
// It is safe for concurrent use.
//
// A turn ends with one record of message-output, whatever ended it: an answer, an error, a deadline, a cancellation or a
// purge. Its turntable.id begins with the turn's id. The ids of the steps and calls of the turn begin with it too.
type EndedTurns struct {
	mu      sync.Mutex
	ended   *lru.LRU[string, struct{}]
	running map[string]map[*work]struct{} // by turn
}

// work is one running call of a model or a tool.
type work struct{ cancel context.CancelCauseFunc }

// NewEndedTurns returns a memory without turns.
func NewEndedTurns() *EndedTurns {
	ended, err := lru.NewLRU[string, struct{}](rememberedTurns, nil)
	if err != nil {
		panic(err) // only for a size that is not positive
	}
	return &EndedTurns{ended: ended, running: map[string]map[*work]struct{}{}}
}

// Observe takes a record of message-output. It cancels the running work of the record's turn. Records without a
// turntable.id, such as those of other pipelines, are ignored.
func (t *EndedTurns) Observe(r processors.Inbound) {
	turn := TurnOf(string(r.Header(topics.HeaderID)))
	if turn == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended.Add(turn, struct{}{})
	for w := range t.running[turn] {
		w.cancel(ErrTurnEnded)
	}
}

// Watch returns a context that ends, with cause ErrTurn, when the turn of a step or call has its output; at once if it has
// it already. id is the turntable.id of the step's or call's record; without one, the context ends only with ctx. The
// caller must call stop when the work has ended.
func (t *EndedTurns) Watch(ctx context.Context, id string) (watched context.Context, stop func()) {
	watched, cancel := context.WithCancelCause(ctx)
	turn := TurnOf(id)
	if turn == "" {
		return watched, func() { cancel(nil) }
	}
	w := &work{cancel}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended.Contains(turn) {
		cancel(ErrTurnEnded)
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
