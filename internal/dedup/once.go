// Package dedup does what is asked for under a key once, and remembers what came of it, for a time and up to a number.
package dedup

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
	bytes  int64
	size   func(K, V) int64 // nil: values have no size
	clock  clock.Clock

	mu    sync.Mutex
	known map[K]*attempt[K, V]
	order list.List // of attempts that are kept, oldest first
	held  int64     // bytes of those in order
}

// attempt is what is done under a key, or was.
type attempt[K comparable, V any] struct {
	key   K
	done  chan struct{} // closed when the rest is set
	value V
	kept  bool
	at    time.Time
	size  int64
}

// New is an empty memory that keeps values for a time, and up to limit of them: the oldest go first.
func New[K comparable, V any](window time.Duration, limit int, c clock.Clock) *Memory[K, V] {
	return &Memory[K, V]{window: window, limit: limit, clock: c, known: map[K]*attempt[K, V]{}}
}

// NewSized is New with a third bound: the values that are remembered have at most the given bytes in all, as size counts
// them. The oldest are evicted first; a value that is larger than the bound is not remembered.
func NewSized[K comparable, V any](
	window time.Duration, limit int, bytes int64, size func(K, V) int64, c clock.Clock,
) *Memory[K, V] {
	m := New[K, V](window, limit, c)
	m.bytes, m.size = bytes, size
	return m
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
		if a.kept && m.size != nil {
			a.size = m.size(a.key, a.value)
		}
		if !a.kept || m.size != nil && a.size > m.bytes {
			delete(m.known, a.key)
			return
		}
		a.at = m.clock.Now()
		m.order.PushBack(a)
		m.held += a.size
		m.forget()
	}()
	a.value, a.kept = try()
}

// forget drops what is over the limit, and what is too old. It is called with the lock held.
func (m *Memory[K, V]) forget() {
	now := m.clock.Now()
	for e := m.order.Front(); e != nil; e = m.order.Front() {
		a := e.Value.(*attempt[K, V])
		within := m.order.Len() <= m.limit && (m.size == nil || m.held <= m.bytes)
		if within && now.Sub(a.at) < m.window {
			return
		}
		m.order.Remove(e)
		m.held -= a.size
		delete(m.known, a.key)
	}
}
