package invoke

import (
	"context"
	"slices"

	"github.com/turntable-streams/turntable/topics"
)

// maxVoid is how many turns of a session are remembered that ended before their first event.
const maxVoid = 64

// isVoid reports whether a record is of a turn that has no stream: it ended before the first event of its worker. The fold group
// makes no batch of what a worker still writes then, and the output is the end of the turn.
func (s *pipelineStream) isVoid(e topics.AgentEvent) bool {
	switch {
	case s.turn != "": // it had an event
		return false
	case slices.Contains(s.void, e.TurnID):
		return true
	case !e.IfBegun,
		slices.ContainsFunc(s.unmatched, func(l sessionRecord) bool { return l.event.TurnID == e.TurnID }):
		return false
	}
	s.void = append(s.void[max(0, len(s.void)+1-maxVoid):], e.TurnID)
	return true
}

// keepUnmatched keeps a record of a turn with an unknown id: a later record of that turn may name this request.
func (s *pipelineStream) keepUnmatched(l sessionRecord) {
	if s.turn != "" {
		return
	}
	s.unmatched, s.unmatchedBytes = append(s.unmatched, l), s.unmatchedBytes+sizeOf(*l.event)
	for len(s.unmatched) > heldRecords || s.unmatchedBytes > heldBytes {
		s.unmatchedBytes -= sizeOf(*s.unmatched[0].event)
		s.unmatched = s.unmatched[1:]
	}
}

// name sets the turn's id from a record that names the request. The turn's earlier records are taken before it. If the turn
// began before this request, they are read again.
func (s *pipelineStream) name(ctx context.Context, l sessionRecord) {
	s.turn = l.event.TurnID
	first := l.offset
	for _, before := range s.unmatched {
		if before.event.TurnID == s.turn {
			s.matched = append(s.matched, before)
			first = min(first, before.offset)
		}
	}
	s.matched, s.unmatched, s.unmatchedBytes = append(s.matched, l), nil, 0
	known := s.pipeline.hub.lookup(s.session, s.turn)
	if known != nil {
		s.finish(known.end)
	}
	if known != nil && known.partition == l.partition && known.first < first {
		s.matched = nil
		s.replayFrom(ctx, section{l.partition, known.first, l.offset + 1})
	}
}

// owns reports whether a record belongs to the turn of the request.
func (s *pipelineStream) owns(e topics.AgentEvent) bool {
	if s.turn != "" {
		return e.TurnID == s.turn
	}
	if e.TurnID == s.request {
		return true
	}
	of := member(member(member(e.Request, "latest_input"), "metadata"), "request_id")
	id, ok := text(of)
	return ok && id == s.request
}
