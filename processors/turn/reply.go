package turn

import (
	"bytes"
	"slices"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// A worker's record answers the open step or one of its calls, or a later step, for which it is held, or it is late. Its ID says
// so (stepname.go), or what it echoes.

// thinkPlace returns the place of the step that the id of a model's record names. ok is false if it names none.
func (s *session) thinkPlace(from *record, r *workerReply) (p place, ok bool) {
	n, ok := namedStep(from, enriched{}.kind())
	if !ok {
		return stepEnded, false
	}
	r.name = n
	if p = s.placeOf(n); p == stepOpen && !s.thinking() {
		p = stepEnded // the model has answered: its calls are known
	}
	return p, true
}

// replyDigest identifies what a model's worker has written about a step. Equal bytes about the same step, or about none that is named,
// are a repeat: a worker that crashes before it commits writes its record again. About two steps, a model can say the same.
func replyDigest(domain string, from *record) digest {
	n, named := namedStep(from, enriched{}.kind())
	if !named {
		return digests.Of(domain, from.Value)
	}
	return digests.Of(domain, from.Value, []byte(outputID(n.turn, n.step, enriched{}, 0)))
}

// echoPlace returns the place of the step that a response answers, judged by the input and the history that it echoes. It is for
// responses whose id names no step.
//
// Workers may omit or alter the echo. Without an input, or with an unknown one and a history that is no longer than the open
// step's, the response answers the open step.
//
// An input of closed steps only means that the response is late. The same input can be that of the open step and of a closed one;
// the length of the echoed history then decides. A worker that compacts the history echoes another length (anyLength): its response
// answers the open step.
//
// After a crash the row can be older than the responses on the topic, so a response can answer a step that has not opened. Its
// input is a waiting message or one that is not read yet. It is held, and applied only to a step with that input and history.
func (s *transition) echoPlace(r *workerReply, echo topics.Raw) place {
	d, ok := s.digestOf(echo)
	turn, thinking := s.row.Turn, s.thinking()
	if !ok {
		return s.openPlace()
	}
	r.input = d
	length, anyLength := r.length, r.anyLength
	closed, same := s.closedStep(d, length)
	if thinking && bytes.Equal(d[:], turn.Input) {
		if anyLength || !same || length == turn.InputHistoryLength {
			return stepOpen
		}
		return stepEnded
	}
	switch {
	case s.namesWaiting(d):
		if same || closed && anyLength {
			return stepEnded
		}
		return stepToCome
	case closed:
		return stepEnded
	case thinking && length <= turn.InputHistoryLength:
		return stepOpen
	case !thinking && !anyLength && length < s.row.HistoryLength:
		return stepEnded
	default:
		return stepToCome
	}
}

// failurePlace is echoPlace for a failure. The worker returns the unchanged record that it failed on, so a different input
// means a different step. A failure without an input counts for the open step.
func (s *transition) failurePlace(r *workerReply, input topics.Raw) place {
	d, ok := s.digestOf(input)
	if !ok {
		return s.openPlace()
	}
	r.input = d
	if s.thinking() && bytes.Equal(d[:], s.row.Turn.Input) {
		return stepOpen
	}
	if closed, _ := s.closedStep(d, 0); closed {
		return stepEnded
	}
	return stepToCome
}

// openPlace returns the place of a record that names no step: it answers the open step, if there is one.
func (s *session) openPlace() place {
	if s.thinking() {
		return stepOpen
	}
	return stepEnded
}

// echoOf returns the input that a response echoes: last_input_message, or in a legacy response the last message that is
// not the model's.
func echoOf(r topics.ThinkResponse) topics.Raw {
	if r.LastInputMessage != nil {
		return r.LastInputMessage
	}
	elements, _ := topics.Elements(r.LastInputResponse)
	for i := len(elements) - 1; i >= 0; i-- {
		m, err := topics.DecodeMessage(elements[i])
		if err == nil && m.Role != nil && *m.Role != roleReplies {
			return elements[i]
		}
	}
	return nil
}

// answersOpenStep reports whether a model's reply is for the open step, given the place of the step that it answers. A
// reply for a later step is held; any other is dead-lettered.
func (s *transition) answersOpenStep(from *record, r workerReply, p place) bool {
	switch {
	case p == stepOpen:
		return true
	case p == stepToCome:
		s.holdForStep(from, r)
	case s.thinking():
		s.deadLetter(reasonOtherStep)
	default:
		s.deadLetter(reasonNoStep)
	}
	return false
}

// claimant returns the open call that a tool's reply answers. If there is none, it holds or dead-letters the reply and
// returns nil.
func (s *transition) claimant(from *record, r workerReply) *turnrow.Call {
	if n, ok := namedStep(from, called{}.kind()); ok {
		r.name = n
		switch s.placeOf(n) {
		case stepToCome:
			s.holdForStep(from, r)
			return nil
		case stepEnded:
			s.deadLetterLate(r)
			return nil
		}
	} else if s.knowsCall(r.digest) { // a repeat; a later call may have the same tool_use_id
		s.deadLetterReply(r, reasonSameResult)
		return nil
	}
	call := s.openCall(r.toolUseID)
	switch {
	case call == nil || call.Gate != nil || !s.answers(r.name, call):
		s.holdForCall(from, r)
	case !sameTool(r.tool, call.Name):
		s.deadLetterReply(r, reasonOtherTool)
	default:
		return call
	}
	return nil
}

// holdForStep stores a reply until its step opens. A reply that cannot be held is dead-lettered.
func (s *transition) holdForStep(from *record, r workerReply) {
	if s.replaying != nil { // it was held already, and the step that opened is not the one that it answers
		s.deadLetterReply(r, reasonOtherStep)
		return
	}
	s.hold(&s.row.Early, from, r, s.after(s.rules.ThinkTimeout), r.repeats, reasonHeldSame)
}

// holdForCall holds a tool's reply that can be early, and dead-letters any other. After a crash, a reply can arrive before the
// think-response that asks for its call, or before the outcome that approves its call. So it can be early while the model is asked,
// or while its call waits for approval. A reply whose tool_use_id belonged to an earlier call is late, unless its id names the
// open step.
func (s *transition) holdForCall(from *record, r workerReply) {
	if !s.thinking() && !s.holdsBack(r) || r.name.turn == "" && s.knowsCall(digests.Of(ofCall, r.toolUseID)) {
		s.deadLetterLate(r)
		return
	}
	s.hold(&s.row.Turn.Held, from, r, 0, r.answersAlike, reasonHeldAlready)
}

// hold stores a reply in a list of the row until a time, 0 for none. It is dead-lettered if the list has the same one, for the
// reason that is given then, or no room.
func (s *transition) hold(
	list *[]*turnrow.Held, from *record, r workerReply, until int64, same func(*turnrow.Held) bool, reason string,
) {
	switch {
	case slices.ContainsFunc(*list, same):
		s.deadLetterReply(r, reason)
		return
	case len(*list) >= maxHeld:
		s.deadLetterReply(r, reasonHeldFull)
		return
	}
	h := r.held(from)
	h.ExpiresMs = until
	*list = append(*list, h)
	if !s.makeRoomUpTo(memories) {
		*list = (*list)[:len(*list)-1]
		s.deadLetterReply(r, reasonNoRoom)
		return
	}
	s.changed = true
}

// holdsBack reports whether a tool's reply answers a call that waits for its approval.
func (s *session) holdsBack(r workerReply) bool {
	c := s.openCall(r.toolUseID)
	return r.kind == turnrow.Held_TOOL && c != nil && c.Gate != nil && s.answers(r.name, c)
}

// deadLetterLate dead-letters a tool's reply that no open or later call will claim.
func (s *transition) deadLetterLate(r workerReply) {
	reason := reasonNoCall
	if s.knowsCall(digests.Of(ofCall, r.toolUseID)) {
		reason = reasonCallEnded
	}
	s.deadLetterReply(r, reason)
}
