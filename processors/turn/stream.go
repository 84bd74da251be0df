package turn

import (
	"cmp"
	"strconv"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// A turn has one event stream, which several writers write without knowing of each other: the workers of the model write what
// the model says, each call of the model as an attempt at its step, and the turn writes the rest. Without Config.Events a turn
// has a stream if the first response is that of a worker of this library: other programs may write streams of their own. Which
// attempt counts is known when a response is accepted: the turn then names it in the record that ends the step. The numbers of
// the turn's records are derived from what they say, and not counted: after a crash the turn can write them again in another
// order, and readers drop those that they have.

// The numbers of the turn's records in a step. The records of the calls follow after seqStepEnd, three for each.
const (
	seqStepStart = 1
	seqStepEnd   = 2
	seqResult    = 1_000_000 // of the terminal record

	callRequest, callResponse, callResult = 1, 2, 3 // a call's records
)

// ownAttempt is the attempt at a step whose events the turn writes, because its worker has written none. Workers number
// theirs by the time, which is always more.
const ownAttempt = 1

// streams reports whether the open turn has an event stream.
func (s *session) streams() bool { return s.row.Turn.GetStream() != nil }

// streamed emits a record of the turn in the open step.
func (s *transition) streamed(seq int, e topics.AgentEvent) { s.streamedAs(seq, seq, e) }

// streamedAs is streamed for a record with the number of another one. index is part of its ID.
func (s *transition) streamedAs(index, seq int, e topics.AgentEvent) {
	turn := s.row.Turn
	step := max(turn.Step, 1) // a turn can end before its first step
	e.SessionID, e.TurnID, e.Step, e.Attempt, e.Seq = s.key, turn.Message.TurnId, int64(step), 1, int64(seq)
	e.Author = topics.AuthorTurn
	if e.Result == nil {
		e.UntilMS = s.silentUntil()
	}
	s.emit(turn.Message.TurnId, step, streamed(e), index)
}

// silentUntil returns how long the open turn may write no event, in milliseconds since the epoch.
func (s *session) silentUntil() int64 {
	turn := s.row.Turn
	until := turn.DeadlineMs
	if turn.StoppedMs != 0 { // the rest of the step's time begins after the last gate
		var ended int64
		for _, g := range s.row.OtherGates {
			if namesTurn(g.TurnId, turn.Message) {
				ended = max(ended, g.ExpiresMs)
			}
		}
		until = ended + max(0, turn.DeadlineMs-turn.StoppedMs)
	}
	for _, c := range turn.Calls {
		if !ended(c) {
			until = max(until, callDeadline(turn, c))
		}
	}
	return until
}

// streamStart marks the beginning of the open step.
func (s *transition) streamStart() {
	if !s.streams() {
		return
	}
	e := topics.AgentEvent{Event: stepEvent("step_start", s.row.Turn.Step)}
	if s.row.Turn.Step == 1 {
		e.Request = requestOf(s.row.Turn.Message)
	}
	s.streamed(seqStepStart, e)
}

// streamClock repeats the beginning of the open step when its clock was stopped or runs again. Readers know the event, and take
// from the record how long the turn may be silent.
func (s *transition) streamClock() {
	if s.streams() {
		e := topics.AgentEvent{Event: stepEvent("step_start", s.row.Turn.Step)}
		s.streamedAs(int(s.silentUntil()), seqStepStart, e)
	}
}

// settle takes the attempt that an accepted response names as that of the open step. If it names none, the turn writes the
// events of the response.
func (s *transition) settle(from *record, r topics.ThinkResponse) {
	header := from.headerText(topics.HeaderEvents)
	attempt, stop, ok := topics.Events([]byte(header))
	begins := ok || header == topics.NoEvents && s.rules.EventsExist
	if turn := s.row.Turn; begins && turn.Stream == nil && turn.Step == 1 {
		turn.Stream = &turnrow.TurnStream{}
		s.streamStart()
	}
	if !s.streams() {
		return
	}
	used := s.row.Turn.Stream
	used.InputTokens += max(0, r.ThinkInputTokens)
	used.OutputTokens += max(0, r.ThinkOutputTokens)
	if cost := costOf(r); cost != nil && (*cost > 0 || r.ThinkCost != nil) { // a difference of 0 is an unknown cost
		used.Cost = addCost(used.Cost, cost)
	}
	if !ok {
		attempt = s.streamResponse(r)
	}
	s.settled = &settlement{attempt: attempt, stop: cmp.Or(stop, "end_turn")}
}

// streamResponse writes the events of a response whose worker wrote none. It returns the attempt that they are.
func (s *transition) streamResponse(r topics.ThinkResponse) topics.AgentAttempt {
	w := replyEvents{limit: s.rules.eventLimit(), step: s.row.Turn.Step, called: map[string]bool{}}
	elements, _ := topics.Elements(r.LastInputResponse)
	for _, raw := range elements {
		m, err := topics.DecodeMessage(raw)
		switch {
		case err != nil:
		case m.Role == nil || *m.Role != roleReplies: // responses of older workers begin with what they answer
			w.events = nil
		default:
			w.message(m.Content)
		}
	}
	for _, item := range r.ToolUses {
		w.call(item.ToolUseID, item.Name, item.Input)
	}
	turn := s.row.Turn
	for i, e := range w.events {
		s.emit(turn.Message.TurnId, turn.Step, replyStreamed{
			SessionID: s.key, TurnID: turn.Message.TurnId, Step: int64(turn.Step), Attempt: ownAttempt, Seq: int64(i + 1), Event: e,
		}, i+1)
	}
	return topics.AgentAttempt{Attempt: ownAttempt, Seq: int64(len(w.events))}
}

// streamStepEnd marks the end of the open step, whose response has tool calls.
func (s *transition) streamStepEnd() {
	if !s.streams() || s.settled == nil {
		return
	}
	s.streamed(seqStepEnd, topics.AgentEvent{
		Event: stepEvent("step_end", s.row.Turn.Step), Settles: &s.settled.attempt,
	})
	s.settled = nil
}

// seqOf returns the number of a call's record.
func seqOf(call, record int) int { return seqStepEnd + 3*call + record }

// streamGate writes that a call waits for its approval.
func (s *transition) streamGate(i int, g gateRequested) {
	if !s.streams() {
		return
	}
	e := gateEvent(g, g.Args)
	if len(e) > s.rules.eventLimit() {
		e = gateEvent(g, nil) // who decides reads the arguments from the gate
	}
	s.streamed(seqOf(i, callRequest), topics.AgentEvent{Event: e})
}

// streamOutcome writes the outcome of a call's gate.
func (s *transition) streamOutcome(i int, gate *turnrow.Gate, o topics.GateOutcome) {
	if !s.streams() {
		return
	}
	payload := rawMember(nil, "approved", strconv.AppendBool(nil, o.Status == topics.GateApproved))
	payload = stringMember(payload, "toolCallId", s.row.Turn.Calls[i].GetToolUseId())
	data := stringMember(stringMember(nil, "id", gate.GateId), "kind", "user_approval")
	s.streamed(seqOf(i, callResponse), topics.AgentEvent{
		Event: wrapped("interaction_response", rawMember(data, "payload", append(payload, '}'))),
	})
}

// streamResult writes the result of a call. A call that the stream does not show has none: one without an ID or with one
// that is too long for an event, and one with the ID of a call before it.
func (s *transition) streamResult(i int, r *turnrow.Result) {
	if !s.streams() || blank(r.ToolUseId) || len(*r.ToolUseId) > maxID {
		return
	}
	for _, c := range s.row.Turn.Calls[:i] {
		if c.GetToolUseId() == *r.ToolUseId {
			return
		}
	}
	s.streamed(seqOf(i, callResult), topics.AgentEvent{Event: resultEvent(r, s.rules.eventLimit())})
}

// streamEnd writes the terminal record of the turn, whose output is o.
func (s *transition) streamEnd(o topics.Output) {
	turn := s.row.Turn
	// Before the first response, the turn does not know whether its worker writes events.
	unknown := !s.streams() && s.rules.EventsExist && turn.GetStep() == 1 && !turn.Responded && o.Error != nil
	if !s.streams() && !unknown {
		return
	}
	result := topics.AgentResult{OK: true, Usage: usageOf(turn.Stream)}
	stop := "end_turn"
	e := topics.AgentEvent{Result: &result, IfBegun: unknown}
	if s.settled != nil {
		stop, e.Settles = s.settled.stop, &s.settled.attempt
		s.settled = nil
	}
	if turn.Step == 0 {
		e.Request = requestOf(turn.Message)
	}
	switch {
	case o.Error == nil:
		result.StopReason = &stop
	case o.Error.Code == topics.CodeCancelled, o.Error.Code == topics.CodeParentCannotAsk:
		stop = "cancelled"
		result.StopReason, result.Error, result.Code = &stop, &o.Error.Message, o.Error.Code
	default:
		result.OK, result.Error, result.Code = false, &o.Error.Message, o.Error.Code
	}
	s.streamed(seqResult, e)
}

// abandonStream writes the terminal record of a turn that is ended without the transition.
func (s *transition) abandonStream(f failure) {
	if id := s.row.Turn.GetMessage().GetTurnId(); id != "" && len(id) <= maxID {
		s.streamEnd(s.rules.errorOutput(f))
	}
}
