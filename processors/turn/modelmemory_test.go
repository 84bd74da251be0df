package turn

import "slices"

// memory is what was seen, with the time: it can be taken back to what it was.
type memory struct {
	entries map[string]int64
	undo    []forgettable
}

type forgettable struct {
	key    string
	before int64
	had    bool
}

func (m *memory) add(key string, at int64) {
	before, had := m.entries[key]
	m.undo = append(m.undo, forgettable{key, before, had})
	m.entries[key] = at
}

func (m *memory) has(key string, since int64) bool {
	at, ok := m.entries[key]
	return ok && at >= since
}

func (m *memory) mark() int { return len(m.undo) }

func (m *memory) rollBack(mark int) {
	for _, u := range slices.Backward(m.undo[mark:]) {
		if u.had {
			m.entries[u.key] = u.before
		} else {
			delete(m.entries, u.key)
		}
	}
	m.undo = m.undo[:mark]
}
