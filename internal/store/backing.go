package store

import (
	"slices"
	"strings"
	"sync"
)

// backing holds the state of the last flushed cut. It is safe for concurrent use.
type backing interface {
	// get returns a key's value, which the caller must not change; ok is false if there is none.
	get(key string) (value []byte, ok bool, err error)
	has(key string) (bool, error)
	// write applies a layer atomically, its offset included. Calls must not overlap. It keeps the values but not the layer.
	write(l *layer) error
	// offset returns the offset of the last layer that had one, or noOffset.
	offset() (int64, error)
	// asOf returns what setAsOf stored last, in milliseconds since the epoch; ok is false if there is none.
	asOf() (ms int64, ok bool, err error)
	// setAsOf stores a time. It never becomes durable before the layers that were written before it.
	setAsOf(ms int64) error
	// scan reads a snapshot of the keys in [start, limit) in their order; a nil or empty bound is none.
	scan(start, limit []byte) cursor
	close() error
}

// cursor reads the pairs of a snapshot. It starts before the first pair. Keys and values are valid until it moves.
type cursor interface {
	next() bool
	seek(key []byte) bool
	key() []byte
	value() []byte
	err() error
	release()
}

// memory is the backing without a disk.
type memory struct {
	mu   sync.RWMutex
	rows map[string][]byte
	last int64
	as   *int64
}

func newMemory() *memory { return &memory{rows: map[string][]byte{}, last: noOffset} }

func (m *memory) get(key string) ([]byte, bool, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	v, ok := m.rows[key]
	return v, ok, nil
}

func (m *memory) has(key string) (bool, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	_, ok := m.rows[key]
	return ok, nil
}

func (m *memory) write(l *layer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for k, r := range l.rows {
		if r.value == nil {
			delete(m.rows, k)
		} else {
			m.rows[k] = r.value
		}
	}
	m.last = max(m.last, l.offset)
	return nil
}

func (m *memory) offset() (int64, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.last, nil
}

func (m *memory) asOf() (int64, bool, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.as == nil {
		return 0, false, nil
	}
	return *m.as, true, nil
}

func (m *memory) setAsOf(ms int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.as = &ms
	return nil
}

// scan copies the pairs in range but not their bytes: a value that was written is never changed, only replaced.
func (m *memory) scan(start, limit []byte) cursor {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var p []pair
	for k, v := range m.rows {
		if within(k, start, limit) {
			p = append(p, pair{k, v})
		}
	}
	sortPairs(p)
	return &pairs{of: p, at: -1}
}

func (*memory) close() error { return nil }

// pair is a key and its value; a nil value stands for a deleted key.
type pair struct {
	key   string
	value []byte
}

func sortPairs(p []pair) {
	slices.SortFunc(p, func(a, b pair) int { return strings.Compare(a.key, b.key) })
}

func findPair(p []pair, key []byte) int {
	i, _ := slices.BinarySearchFunc(p, string(key), func(a pair, k string) int { return strings.Compare(a.key, k) })
	return i
}

func within(key string, start, limit []byte) bool {
	return key >= string(start) && (len(limit) == 0 || key < string(limit))
}

// pairs is a cursor over sorted pairs.
type pairs struct {
	of []pair
	at int
}

func (p *pairs) next() bool {
	p.at = min(p.at+1, len(p.of))
	return p.at < len(p.of)
}

func (p *pairs) seek(key []byte) bool {
	p.at = findPair(p.of, key)
	return p.at < len(p.of)
}

func (p *pairs) key() []byte   { return []byte(p.of[p.at].key) }
func (p *pairs) value() []byte { return p.of[p.at].value }
func (p *pairs) err() error    { return nil }
func (p *pairs) release()      { p.of = nil }
