package turn

import (
	"github.com/stretchr/testify/require"
)

// effects are the effects of one event.
type effects []effect

func (es effects) letters() (reasons []string) {
	for _, e := range es {
		if l, ok := e.(deadLetter); ok {
			reasons = append(reasons, l.Reason)
		}
	}
	return reasons
}

func emitted[V value](es effects) (list []V) {
	for _, e := range es {
		if m, ok := e.(emit); ok {
			if v, ok := m.Value.(V); ok {
				list = append(list, v)
			}
		}
	}
	return list
}

// the is the only record of its kind.
func the[V value](t tb, es effects) V {
	t.Helper()
	list := emitted[V](es)
	require.Len(t, list, 1)
	return list[0]
}

func (es effects) ids() (ids []string) {
	for _, e := range es {
		if m, ok := e.(emit); ok {
			ids = append(ids, m.ID)
		}
	}
	return ids
}
