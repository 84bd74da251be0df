package delivery

import "slices"

func (d DeadlineCame) apply(s *session) {
	d.end(s)
	// A deadline that fired too early, by rules that were changed or a clock that was set back, fires again only after
	// the row was written.
	s.changed = s.changed || s.row.DeadlineMs != 0
}

func (DeadlineCame) end(s *session) {
	s.expireRoutes()
	n := len(s.row.Dead)
	s.row.Dead = slices.DeleteFunc(s.row.Dead, func(d *Delivery) bool { return d.DueMs <= s.nowMS() })
	s.changed = s.changed || len(s.row.Dead) != n
	if at, ok := s.rest(); ok && at <= s.nowMS() {
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
	for _, d := range s.row.Open {
		switch {
		case d.Phase == Phase_PHASE_IN_FLIGHT:
			add(d.DueMs)
		case s.blocked(d):
			add(d.ExpiresMs)
		default:
			add(min(d.DueMs, d.ExpiresMs))
		}
	}
	for _, d := range s.row.Dead {
		add(d.DueMs)
	}
	for _, r := range s.row.Routes {
		add(r.ExpiresMs)
	}
	if at, ok := s.rest(); ok {
		add(at)
	}
	return earliest
}

// rest is when a session is over of which only memories are left.
func (s *session) rest() (at int64, ok bool) {
	if len(s.row.Open)+len(s.row.Dead)+len(s.row.Routes) > 0 {
		return 0, false
	}
	return s.row.TouchedMs + s.rules.RememberFor.Milliseconds(), true
}
