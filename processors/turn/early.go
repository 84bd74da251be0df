package turn

import (
	"bytes"
	"slices"

	"github.com/turntable-streams/turntable/topics"
)

// At least once, a crash can leave the row older than its outputs: an output is acknowledged before the row that implies
// it is written. Its worker answers, and after the restart the answer may be read before the record that opens its step,
// because topics have no common order. The worker may drop the repeated output, so the answer does not come again. It is
// held in the row until its step opens, and is then applied as if it came at that moment.

// workerReply is what a worker's record says of itself: what it is, and which step or call it answers.
type workerReply struct {
	kind      Held_Kind
	failure   bool   // of a tool
	toolUseID string // of a tool's record
	digest    digest // of the record's bytes
	name      stepName
	// What a model's record echoes, where its id names no step: the digest of the input and the length of the history.
	input     digest
	length    uint32
	anyLength bool
}

// held is a reply as the row holds it, with memory of its own: the row outlives the record.
func (r workerReply) held(from *Record) *Held {
	h := &Held{
		Kind: r.kind, Failure: r.failure, ToolUseId: r.toolUseID, Digest: r.digest[:],
		TurnId: r.name.turn, Step: r.name.step, Call: r.name.call,
		Topic: from.Topic, Partition: from.Partition, Offset: from.Offset,
		Value: bytes.Clone(from.Value), Headers: from.cloneHeaders(),
	}
	if r.kind != Held_TOOL && r.name.turn == "" {
		h.Input, h.InputHistoryLength, h.AnyLength = r.input[:], r.length, r.anyLength
	}
	return h
}

// hold keeps a reply for a step that is still to come.
func (s *session) hold(from *Record, r workerReply) {
	switch {
	case s.replaying != nil: // the step that it was held for has opened, and is not the one that it answers
		s.refuseReply(r, reasonOtherStep)
		return
	case slices.ContainsFunc(s.row.Early, r.repeats):
		s.refuseReply(r, reasonHeldSame)
		return
	case len(s.row.Early) >= maxHeld:
		s.refuseReply(r, reasonHeldFull)
		return
	}
	h := r.held(from)
	h.ExpiresMs = s.after(s.rules.ThinkTimeout)
	s.row.Early = append(s.row.Early, h)
	if !s.makeRoomUpTo(memories) {
		s.row.Early = s.row.Early[:len(s.row.Early)-1]
		s.refuseReply(r, reasonNoRoom)
		return
	}
	s.changed = true
}

// refuseReply refuses a reply that cannot be held. The failure of a tool goes in silence: it is on a dead-letter topic.
func (s *session) refuseReply(r workerReply, reason string) {
	if !r.failure {
		s.refuse(reason)
	}
}

// repeats reports whether a held record says the same.
func (r workerReply) repeats(h *Held) bool {
	return h.Kind == r.kind && bytes.Equal(h.Digest, r.digest[:])
}

// name is the output that a held record answers.
func (h *Held) name() stepName { return stepName{h.TurnId, h.Step, h.Call} }

// echoes reports whether a held reply of a model names its step by the input that it echoes, and that is the input.
func (h *Held) echoes(input []byte) bool {
	return h.Kind != Held_TOOL && h.TurnId == "" && bytes.Equal(h.Input, input)
}

// isDue reports whether a held record waits for nothing more: its step is open, or can no longer open.
func (s *session) isDue(h *Held) bool {
	turn := s.row.Turn
	if h.TurnId != "" { // what names a turn that has ended was given up with it
		return turn != nil && turn.Message.GetTurnId() == h.TurnId && h.Step <= turn.Step
	}
	return s.thinking() && bytes.Equal(turn.Input, h.Input) &&
		(h.AnyLength || turn.InputHistoryLength == h.InputHistoryLength)
}

// applyEarly applies the held records whose steps have opened. These may open further steps. It reports whether there
// were any.
func (s *session) applyEarly() (any bool) {
	for s.changed && !s.starved && !s.purging {
		i := slices.IndexFunc(s.row.Early, s.isDue)
		if i < 0 {
			break
		}
		any = true
		h := s.row.Early[i]
		s.row.Early, s.changed = slices.Delete(s.row.Early, i, i+1), true
		e, err := h.event(s.key)
		if err != nil { // the row was damaged: what it holds was readable when it came
			s.giveUp(h, reasonUnreadable)
			continue
		}
		s.replaying = h
		e.apply(s)
		s.replaying = nil
	}
	return any
}

// event is what a held record was when it came.
func (h *Held) event(session string) (e Event, err error) {
	r := &Record{
		Session: session, Value: h.Value, Topic: h.Topic, Partition: h.Partition, Offset: h.Offset, Headers: h.Headers,
	}
	r.Cause = r.headerText(topics.HeaderID)
	r.Own = r.Cause != ""
	switch {
	case h.Kind == Held_RESPONSE:
		var v topics.ThinkResponse
		v, err = topics.DecodeThinkResponse(h.Value)
		e = ThinkResponded{r, v}
	case h.Kind == Held_THINK_FAILURE:
		var v topics.ThinkFailure
		v, err = topics.DecodeThinkFailure(h.Value)
		e = ThinkFailed{r, v}
	case h.Failure:
		var v topics.ToolUseItem
		v, err = topics.DecodeToolUse(h.Value)
		e = ToolFailed{r, v}
	default:
		var v topics.ToolUseResult
		v, err = topics.DecodeToolResult(h.Value)
		e = ToolAnswered{r, v}
	}
	return e, err
}

// releaseEarly gives up what is held for a message that has its output.
func (s *session) releaseEarly(a *Accepted) {
	var input digest
	named := false
	if len(s.row.Early) > 0 && a.Input != nil { // it never had its turn
		input, named = s.digestOf(a.Input)
	}
	s.giveUpEarly(reasonTurnEnded, func(h *Held) bool {
		return h.TurnId == a.TurnId || h.TurnId == "" && named && bytes.Equal(h.Input, input[:])
	})
}

// expireEarly gives up what has waited too long for its step. A record whose turn is open or waits goes on waiting: that
// turn has a deadline, and takes the record with it when it ends.
func (s *session) expireEarly() {
	for _, h := range s.row.Early {
		if h.ExpiresMs <= s.nowMS() && s.expects(h) {
			h.ExpiresMs, s.changed = s.after(s.rules.ThinkTimeout), true
		}
	}
	s.giveUpEarly(reasonNotOpened, func(h *Held) bool { return h.ExpiresMs <= s.nowMS() })
}

// expects reports whether the turn that a held record answers is open, or its message waits.
func (s *session) expects(h *Held) bool {
	if h.TurnId == "" {
		return len(h.Input) == digestSize && s.namesWaiting(digest(h.Input))
	}
	return s.row.Turn != nil && s.row.Turn.Message.GetTurnId() == h.TurnId ||
		slices.ContainsFunc(s.row.Waiting, func(a *Accepted) bool { return a.TurnId == h.TurnId })
}

func (s *session) giveUpEarly(reason string, which func(*Held) bool) {
	if len(s.row.Early) == 0 {
		return
	}
	s.row.Early = slices.DeleteFunc(s.row.Early, func(h *Held) bool {
		if !which(h) {
			return false
		}
		s.giveUp(h, reason)
		return true
	})
}

// dropHeld gives up the record that was held last, those for steps to come first. It reports false where none is held.
func (s *session) dropHeld() bool {
	from := &s.row.Early
	if len(*from) == 0 {
		if s.row.Turn == nil || len(s.row.Turn.Held) == 0 {
			return false
		}
		from = &s.row.Turn.Held
	}
	last := len(*from) - 1
	h := (*from)[last]
	*from = slices.Delete(*from, last, last+1)
	s.giveUp(h, reasonNoRoom)
	return true
}
