package turn

import "time"

func (d DeadlineCame) apply(s *session) {
	if turn := s.row.Turn; turn != nil && turn.DeadlineMs <= s.nowMS() {
		s.changed, s.row.TouchedMs = true, s.nowMS()
		if s.thinking() {
			s.fail(thinkTimeout(s))
		} else {
			s.timeOutCalls()
		}
	}
	s.expireRoutes()
	if at, ok := s.lastDay(); ok && at <= s.nowMS() {
		s.changed, s.erased = true, true
	}
}

// deadline is the earliest open deadline, 0 where there is none.
func (s *session) deadline() int64 {
	earliest := int64(0)
	add := func(at int64) {
		if earliest == 0 || at < earliest {
			earliest = at
		}
	}
	if s.row.Turn != nil {
		add(s.row.Turn.DeadlineMs)
	}
	for _, r := range s.row.Routes {
		add(r.ExpiresMs)
	}
	for _, a := range s.unfinished() {
		if a.Route != nil {
			add(a.Route.ExpiresMs)
		}
	}
	if at, ok := s.lastDay(); ok {
		add(at)
	}
	return earliest
}

// lastDay is when a session at rest goes: after the idle time, if there is one, and a row that holds no conversation
// once what it remembers is forgotten anyhow.
func (s *session) lastDay() (at int64, ok bool) {
	if s.row.Turn != nil || len(s.row.Waiting) > 0 || len(s.row.Routes) > 0 {
		return 0, false
	}
	stay := func(d time.Duration) int64 { return s.row.TouchedMs + d.Milliseconds() }
	if s.rules.IdleAfter > 0 {
		at, ok = stay(s.rules.IdleAfter), true
	}
	if s.row.History == nil && s.row.Cost == nil {
		if forgotten := stay(s.rules.RememberFor); !ok || forgotten < at {
			at, ok = forgotten, true
		}
	}
	return at, ok
}
