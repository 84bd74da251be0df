package store_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/store"
)

// state is what a store, or a cut of it, holds.
type state struct {
	rows   map[string]string
	offset int64
}

func (s state) clone() state { return state{maps.Clone(s.rows), s.offset} }

// model is a store written in the plainest way: every layer with all below it.
type model struct {
	flushed state
	sealed  *state
	now     state
	dirty   bool // a row or an offset was set since the last seal
	armed   map[string]int64

	recovered, through bool
}

func (m *model) committed() bool { return m.through || !m.recovered }

// start is what a process that starts again finds.
func (m *model) start() {
	m.now, m.sealed, m.recovered = m.flushed.clone(), nil, false
	m.dirty, m.armed = false, map[string]int64{}
	for k := range m.now.rows {
		m.arm(k)
	}
}

func (m *model) write(key string) {
	m.dirty = true
	m.arm(key)
}

func (m *model) arm(key string) {
	delete(m.armed, key)
	if ms, ok := deadline([]byte(m.now.rows[key])); ok && !part(key) {
		m.armed[key] = ms
	}
}

func (m *model) flush() {
	if m.sealed != nil {
		m.flushed, m.sealed = *m.sealed, nil
	}
}

// settle writes what is committed by definition.
func (m *model) settle() {
	if m.committed() {
		m.flushed, m.dirty = m.now.clone(), false
	}
}

// part reports whether a key is that of a part of a row, which has no deadline and no iterator sees.
func part(key string) bool { return strings.Contains(key, "\x00") }

func TestStoreEqualsModelOnDisk(t *testing.T) {
	dir, n := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		compare(rt, filepath.Join(dir, fmt.Sprint(n)))
	})
}

func TestStoreEqualsModelInMemory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { compare(rt, "") })
}

// compare runs random steps on a store at path, or in memory, and on its model.
func compare(t *rapid.T, path string) {
	m := model{flushed: state{map[string]string{}, -3}, through: rapid.IntRange(0, 4).Draw(t, "through") == 0}
	opts := []store.Option{store.WithDeadline(deadline)}
	if m.through {
		opts = append(opts, store.WithThrough())
	}
	if rapid.Bool().Draw(t, "shared") {
		opts = append(opts, store.WithShared())
	}
	open := func() *store.Store {
		if path == "" {
			return store.InMemory(opts...)
		}
		s, err := store.Open(path, opts...)
		require.NoError(t, err)
		return s
	}
	s := open()
	m.start()
	defer func() { require.NoError(t, s.Close()) }()

	key := rapid.SampledFrom([]string{"", "a", "b", "c\x001", "c\x002", "\x00offset", "\x01a", "\xff"})
	value := rapid.SampledFrom([]string{"", "row", "@1", "@2", "@3", strings.Repeat("r", 300)})
	steps := map[string]func(*rapid.T){
		"set": func(t *rapid.T) {
			k, v := key.Draw(t, "key"), value.Draw(t, "value")
			require.NoError(t, s.Set(k, []byte(v)))
			m.now.rows[k] = v
			m.write(k)
		},
		"delete": func(t *rapid.T) {
			k := key.Draw(t, "key")
			require.NoError(t, s.Delete(k))
			delete(m.now.rows, k)
			m.write(k)
		},
		"offset": func(t *rapid.T) {
			o := rapid.Int64Range(0, 50).Draw(t, "offset")
			require.NoError(t, s.SetOffset(o))
			if o > m.now.offset {
				m.now.offset, m.dirty = o, true
			}
			if m.recovered {
				m.settle()
			}
		},
		"recovered": func(t *rapid.T) {
			require.NoError(t, s.MarkRecovered())
			m.settle()
			m.recovered = true
		},
		"seal": func(t *rapid.T) {
			want := !m.committed() && m.dirty
			require.Equal(t, want, s.Seal())
			if want {
				cut := m.now.clone()
				m.sealed, m.dirty = &cut, false
			}
		},
		"flush": func(t *rapid.T) {
			require.NoError(t, s.Flush())
			m.flush()
		},
		"pop": func(t *rapid.T) {
			now := rapid.Int64Range(0, 4).Draw(t, "now")
			for _, e := range s.Due().PopDue(now, 100) {
				require.Contains(t, m.armed, e.Key)
				require.Equal(t, m.armed[e.Key], e.Ms)
				delete(m.armed, e.Key)
			}
			for _, ms := range m.armed {
				require.Greater(t, ms, now)
			}
		},
		"range": func(t *rapid.T) {
			start, limit := key.Draw(t, "start"), key.Draw(t, "limit")
			it, err := s.IteratorWithRange([]byte(start), []byte(limit))
			require.NoError(t, err)
			defer it.Release()
			from := key.Draw(t, "seek")
			var want, got []string
			for _, k := range slices.Sorted(maps.Keys(m.now.rows)) {
				if !part(k) && k >= start && (limit == "" || k < limit) && k >= from {
					want = append(want, k)
				}
			}
			require.Equal(t, len(want) > 0, it.Seek([]byte(from)))
			for it.Next() {
				got = append(got, string(it.Key()))
			}
			require.Equal(t, want, got)
		},
		"": func(t *rapid.T) {
			it, err := s.Iterator()
			require.NoError(t, err)
			defer it.Release()
			got := map[string]string{}
			for it.Next() {
				v, err := it.Value()
				require.NoError(t, err)
				got[string(it.Key())] = string(v)
				read, err := s.Get(string(it.Key()))
				require.NoError(t, err)
				require.Equal(t, v, read)
			}
			require.NoError(t, it.Err())
			for k, v := range m.now.rows {
				if part(k) { // read by key only
					raw, err := s.Get(k)
					require.NoError(t, err)
					got[k] = string(raw)
					require.Equal(t, v, got[k])
				}
			}
			require.Equal(t, m.now.rows, got)
			o, err := s.GetOffset(-3)
			require.NoError(t, err)
			require.Equal(t, m.now.offset, o)
			require.Equal(t, len(m.armed), s.Due().Len())
		},
	}
	if path != "" {
		steps["restart"] = func(t *rapid.T) { // one step, not two: opening a LevelDB syncs
			if rapid.Bool().Draw(t, "crash") {
				require.NoError(t, s.Kill())
			} else {
				require.NoError(t, s.Close())
				m.settle()
			}
			s = open()
			m.start()
		}
	}
	t.Repeat(steps)
}
