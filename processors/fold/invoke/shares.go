package invoke

// shares counts what callers and sessions have in a buffer. Those that have nothing are not in the maps.
type shares struct {
	callers  map[string]share
	sessions map[string]int // turns
}

type share struct{ turns, bytes int }

func newShares() shares { return shares{callers: map[string]share{}, sessions: map[string]int{}} }

// add counts turns and bytes of the caller and the session of a turn.
func (s shares) add(rec *recording, turns, bytes int) {
	c := s.callers[rec.caller]
	c.turns, c.bytes = c.turns+turns, c.bytes+bytes
	if s.callers[rec.caller] = c; c.turns == 0 {
		delete(s.callers, rec.caller)
	}
	session := rec.key.session
	if s.sessions[session] += turns; s.sessions[session] == 0 {
		delete(s.sessions, session)
	}
}
