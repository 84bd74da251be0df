package turn

import (
	"slices"

	"github.com/turntable-streams/turntable/topics"
)

func (e Controlled) apply(s *session) {
	cancelled := failure{topics.CodeCancelled, "cancelled"}.withReason(e.Control.Reason)
	switch {
	case e.tombstone():
		s.refuse(reasonTombstone)
	case e.Control.Action == topics.ActionPurge:
		s.purge(cancelled)
	case e.Control.Action != topics.ActionCancel:
		s.refuse(reasonAction)
	case !s.cancel(named(e.Control.RequestID), cancelled):
		s.refuse(reasonNoRequest)
		s.changed = true // a repeat must not cancel what comes after
	}
}

// cancel ends the open turn, or the message with the request id, open or waiting.
func (s *session) cancel(request *string, f failure) bool {
	if turn := s.row.Turn; turn != nil && (request == nil || sameRequest(turn.Message.RequestId, request)) {
		s.fail(f)
		return true
	}
	for i, a := range s.row.Waiting {
		if sameRequest(a.RequestId, request) {
			s.row.Waiting = slices.Delete(s.row.Waiting, i, i+1)
			s.reject(a, f)
			return true
		}
	}
	return false
}

// purge ends the session. What was accepted still gets its output; then all goes but the digests of what was applied.
// Repeats of it may still come, from a worker or after a crash, and must not begin the session anew (D-32). The digests
// go by timer, when they are forgotten.
func (s *session) purge(f failure) {
	s.changed, s.purging = true, true
	if s.row.Turn != nil {
		s.fail(f)
	}
	for _, a := range s.row.Waiting {
		s.reject(a, f)
	}
	s.giveUpEarly(reasonPurged, func(*Held) bool { return true })
	s.row = &State{
		Version: rowVersion, TouchedMs: s.nowMS(), UsedRoutesMs: s.row.UsedRoutesMs,
		Causes: s.row.Causes, Requests: s.row.Requests, Calls: s.row.Calls, Steps: s.row.Steps,
	}
}

// gone reports whether nothing is left of a session but what it remembers.
func (s *session) gone() bool {
	return s.row.Turn == nil && len(s.row.Waiting) == 0 && len(s.row.Routes) == 0 && len(s.row.Early) == 0 &&
		s.row.History == nil && s.row.HistoryParts == nil && s.row.Cost == nil && s.row.UserId == nil
}
