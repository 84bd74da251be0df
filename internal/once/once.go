// Package once does what is asked for under a key once, and remembers what came of it, for a time and up to a number.
package once

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/internal/clock"
)

// Memory remembers what came of keys. It is safe for concurrent use.
type Memory[K comparable, V any] struct {
	window time.Duration
	limit  int
	clock  clock.Clock

	mu    sync.Mutex
	known map[K]*attempt[K, V]
	order list.List // of attempts that are kept, oldest first
}

// attempt is what is done under a key, or was.
type attempt[K comparable, V any] struct {
	key   K
	done  chan struct{} // closed when the rest is set
	value V
	kept  bool
	at    time.Time
}

// New is an empty memory that keeps values for a time, and up to limit of them: the oldest go first.
func New[K comparable, V any](window time.Duration, limit int, c clock.Clock) *Memory[K, V] {
	return &Memory[K, V]{window: window, limit: limit, clock: c, known: map[K]*attempt[K, V]{}}
}

// Do returns what is remembered under the key, or calls try. What try returns is remembered where it says keep; else
// the next who asks tries again. Whoever asks while another tries waits for that one, until ctx ends. repeated says
// that the value is another call's. A panic of try passes through, and nothing is remembered.
func (m *Memory[K, V]) Do(
	ctx context.Context, key K, try func() (value V, keep bool),
) (value V, repeated bool, err error) {
	for {
		a, first := m.enter(key)
		if first {
			m.attempt(a, try)
			return a.value, false, nil
		}
		select {
		case <-a.done:
		case <-ctx.Done():
			return value, false, ctx.Err()
		}
		if a.kept {
			return a.value, true, nil
		}
	}
}

// Len is how many values are remembered.
func (m *Memory[K, V]) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget()
	return m.order.Len()
}

// enter is the attempt that is known by the key, or a new one, which the caller has to make.
func (m *Memory[K, V]) enter(key K) (a *attempt[K, V], first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget()
	if a := m.known[key]; a != nil {
		return a, false
	}
	a = &attempt[K, V]{key: key, done: make(chan struct{})}
	m.known[key] = a
	return a, true
}

func (m *Memory[K, V]) attempt(a *attempt[K, V], try func() (V, bool)) {
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		close(a.done)
		if !a.kept {
			delete(m.known, a.key)
			return
		}
		a.at = m.clock.Now()
		m.order.PushBack(a)
		m.forget()
	}()
	a.value, a.kept = try()
}

// forget drops what is over the limit, and what is too old. It is called with the lock held.
func (m *Memory[K, V]) forget() {
	now := m.clock.Now()
	for e := m.order.Front(); e != nil; e = m.order.Front() {
		a := e.Value.(*attempt[K, V])
		if m.order.Len() <= m.limit && now.Sub(a.at) < m.window {
			return
		}
		m.order.Remove(e)
		delete(m.known, a.key)
	}
}
