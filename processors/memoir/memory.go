package memoir

import "github.com/turntable-streams/turntable/internal/digests"

// remember stores that something with an ID was handled. IDs of different kinds are different.
func (t *transition) remember(kind, id string) {
	if !t.remembers(kind, id) {
		t.row.Remembered, t.changed = t.window().Add(t.row.Remembered, kind+"\x00"+id, t.now), true
	}
}

// remembers reports whether something with an ID was handled less than Config.RememberFor ago.
func (t *transition) remembers(kind, id string) bool {
	return t.window().Has(t.row.Remembered, kind+"\x00"+id, t.now)
}

func (t *transition) window() digests.Window {
	return digests.Window{For: t.config.RememberFor, Count: t.config.RememberCount}
}
