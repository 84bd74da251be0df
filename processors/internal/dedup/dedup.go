// Package dedup runs a function once per key and remembers its result, bounded by age, count and size.
package dedup

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/internal/clock"
)

// Memory maps keys to results. It is safe for concurrent use.
type Memory[K comparable, V any] struct {
	window time.Duration
	limit  int
	bytes  int64
	size   func(K, V) int64 // nil: values have no size
	clock  clock.Clock

	mu      sync.Mutex
	entries map[K]*entry[K, V]
	order   list.List // the remembered entries, oldest first
	held    int64     // the sum of their sizes
}

// entry is a running call for a key, or its result.
type entry[K comparable, V any] struct {
	key   K
	done  chan struct{} // closed when the rest is set
	value V
	kept  bool
	at    time.Time
	size  int64
}

// New returns an empty memory. It remembers a value for window, and at most limit values; the oldest are evicted first.
func New[K comparable, V any](window time.Duration, limit int, c clock.Clock) *Memory[K, V] {
	return &Memory[K, V]{window: window, limit: limit, clock: c, entries: map[K]*entry[K, V]{}}
}

// NewSized is New with a third bound: the remembered values have at most bytes in total, as counted by size. The oldest
// are evicted first. A value larger than bytes is not remembered.
func NewSized[K comparable, V any](
	window time.Duration, limit int, bytes int64, size func(K, V) int64, c clock.Clock,
) *Memory[K, V] {
	m := New[K, V](window, limit, c)
	m.bytes, m.size = bytes, size
	return m
}

// Do returns the value remembered for key, or calls try. If try returns keep, its value is remembered; otherwise the next
// call of Do for key calls its own try. While try runs, other calls for key wait for it, or return ctx.Err() when their ctx
// ends. repeated reports that the value was computed by another call. A panic of try propagates to the caller, and nothing
// is remembered.
func (m *Memory[K, V]) Do(
	ctx context.Context, key K, try func() (value V, keep bool),
) (value V, repeated bool, err error) {
	for {
		a, first := m.enter(key)
		if first {
			m.run(a, try)
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

// Len returns how many values are remembered.
func (m *Memory[K, V]) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.evict()
	return m.order.Len()
}

// enter returns the entry of key. If first is true, the entry is new and the caller must run it.
func (m *Memory[K, V]) enter(key K) (a *entry[K, V], first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.evict()
	if a := m.entries[key]; a != nil {
		return a, false
	}
	a = &entry[K, V]{key: key, done: make(chan struct{})}
	m.entries[key] = a
	return a, true
}

func (m *Memory[K, V]) run(a *entry[K, V], try func() (V, bool)) {
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		close(a.done)
		if a.kept && m.size != nil {
			a.size = m.size(a.key, a.value)
		}
		if !a.kept || m.size != nil && a.size > m.bytes {
			delete(m.entries, a.key)
			return
		}
		a.at = m.clock.Now()
		m.order.PushBack(a)
		m.held += a.size
		m.evict()
	}()
	a.value, a.kept = try()
}

// evict removes the oldest values until all bounds hold. The caller holds the lock.
func (m *Memory[K, V]) evict() {
	now := m.clock.Now()
	for e := m.order.Front(); e != nil; e = m.order.Front() {
		a := e.Value.(*entry[K, V])
		within := m.order.Len() <= m.limit && (m.size == nil || m.held <= m.bytes)
		if within && now.Sub(a.at) < m.window {
			return
		}
		m.order.Remove(e)
		m.held -= a.size
		delete(m.entries, a.key)
	}
}
