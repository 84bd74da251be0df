package turn

import (
	"slices"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

func (s *transition) receiveControl(e Controlled) {
	cancelled := failure{topics.CodeCancelled, "cancelled"}.withReason(e.Control.Reason)
	switch {
	case e.tombstone():
		s.deadLetter(reasonTombstone)
	case e.Control.Action == topics.ActionPurge:
		s.purge(cancelled)
	case e.Control.Action == topics.ActionEnd:
		s.endNow(e.Record)
	case e.Control.Action != topics.ActionCancel:
		s.deadLetter(reasonAction)
	case !s.cancel(notBlank(e.Control.RequestID), cancelled):
		s.deadLetter(reasonNoRequest)
		s.changed = true // remember the record: a repeat must not cancel a later message
	}
}

// cancel ends the message with the request id, whether its turn is open or it waits; a nil request means the open turn.
// It reports whether there was one.
func (s *transition) cancel(request *string, f failure) bool {
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

// purge ends the session. Accepted messages still get their output; then everything is deleted except the digests of
// applied records. Workers or a crash can still repeat these records, and a repeat must not start the session again. The
// row is deleted by timer when the digests expire.
func (s *transition) purge(f failure) {
	s.changed, s.purging = true, true
	if s.row.Turn != nil {
		s.fail(f)
	}
	for _, a := range s.row.Waiting {
		s.reject(a, f)
	}
	s.giveUpEarly(reasonPurged, func(*turnrow.Held) bool { return true })
	s.row = &turnrow.State{
		Version: rowVersion, TouchedMs: s.nowMS(), UsedRoutesMs: s.row.UsedRoutesMs,
		Causes: s.row.Causes, Requests: s.row.Requests, Calls: s.row.Calls, Steps: s.row.Steps,
	}
}
