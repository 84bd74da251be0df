// Package inorder lets one piece of work at a time through for each key, in the order of arrival.
package inorder

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// ErrBusy is returned by Do when too much work is in progress.
var ErrBusy = errors.New("channel: too many events in progress")

// Turns are the turns of keys, such as conversations. The zero value is ready. It is safe for concurrent use, and remembers only keys
// with work in progress.
type Turns[K comparable] struct {
	// All is how many pieces of work are in progress or wait, and Each how many of them of one key. 0 is any number.
	All, Each int

	mu      sync.Mutex
	used    int
	waiting map[K][]chan struct{} // of keys with work in progress, what waits for it
}

// Do runs work after the earlier work of its key and returns its error. Without running work, it returns ErrBusy, or the error of ctx
// if ctx ends before its turn.
func (t *Turns[K]) Do(ctx context.Context, key K, work func() error) error {
	if err := t.enter(ctx, key); err != nil {
		return err
	}
	defer t.leave(key)
	return work()
}

// Waiting returns how many pieces of work of a key wait, and whether one is in progress.
func (t *Turns[K]) Waiting(key K) (n int, busy bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	queue, busy := t.waiting[key]
	return len(queue), busy
}

func (t *Turns[K]) enter(ctx context.Context, key K) error {
	t.mu.Lock()
	queue, busy := t.waiting[key]
	if t.All > 0 && t.used >= t.All || t.Each > 0 && busy && len(queue)+1 >= t.Each {
		t.mu.Unlock()
		return ErrBusy
	}
	if t.waiting == nil {
		t.waiting = map[K][]chan struct{}{}
	}
	t.used++
	mine := make(chan struct{})
	if !busy {
		t.waiting[key] = nil
		t.mu.Unlock()
		return nil
	}
	t.waiting[key] = append(queue, mine)
	t.mu.Unlock()
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.waiting[key], mine); i >= 0 {
		t.waiting[key] = slices.Delete(t.waiting[key], i, i+1)
		t.used--
		return ctx.Err()
	}
	return nil // the turn came at the same time
}

func (t *Turns[K]) leave(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.used--
	queue := t.waiting[key]
	if len(queue) == 0 {
		delete(t.waiting, key)
		return
	}
	close(queue[0])
	t.waiting[key] = queue[1:]
}
