package invoke

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/topics"
)

// pipelineStream is one turn, read from the topic.
type pipelineStream struct {
	pipeline     *Pipeline
	session      string
	request      string // the request's id
	turn         string // the turn's id, empty until a record of it names the request
	box          *inbox
	replay       *replay            // nil if there is no replay or it has ended
	cancelReplay context.CancelFunc // cancels replay
	from         section            // live events in it were in the replay
	first        int64              // the offset of the turn's first record that was taken; -1 before
	caller       string             // who takes turns with others
	failed       *topics.Output     // known from the index: the pipeline answered with an error

	unmatched      []sessionRecord // the last records of turns that may be this one
	unmatchedBytes int
	matched        []sessionRecord // unmatched records that belong to the turn, to be taken next

	sequence     sequence
	received     int64 // seq of the last record of the attempt that the client has received
	ready        []topics.AgentEvent
	newer        *sessionRecord // the first record of a newer attempt
	replaced     bool           // the events of a step were replaced: the turn is read again from its beginning
	answered     time.Time      // when the turn's output was read; zero if it was not
	unended      error          // the end of a turn with an output, if no record ends its events
	quiet        time.Time      // how long the turn has announced to be silent
	touched      time.Time      // when the turn's last record was received
	missingSince time.Time      // since when a record is missing, if the sequence is open
	gapInReplay  bool           // the record after the missing one was found in the replay
	done         bool           // a done event was received
	closed       bool           // a second done event with a stop reason was received: it is the last event
	end          fold.End

	// With WithGates only. written is about when the last record was written.
	pauses   *pauses // nil otherwise
	written  time.Time
	after    EventID // a request that answers gets the events after this one
	awaits   []awaited
	answerBy time.Time
	caughtUp bool // the follower has caught up at the pause
}

// TurnID implements Named. It returns the request's id, by which a turn with another id is found, too.
func (s *pipelineStream) TurnID() string { return s.request }

// Next implements Stream.
func (s *pipelineStream) Next(ctx context.Context) (Item, error) {
	for {
		if s.closed {
			return Item{}, io.EOF
		}
		for len(s.ready) > 0 {
			e := s.ready[0]
			s.ready = s.ready[1:]
			if e.Result != nil {
				if s.pausesAt(e) {
					continue
				}
				if item, ok := s.lastDone(e); ok {
					return item, nil
				}
				s.end = s.ending(endOf(*e.Result))
				return Item{}, io.EOF
			}
			if item, ok := s.item(e); ok {
				return item, nil
			}
		}
		if s.replaced {
			s.replaced = false
			return Item{}, &Superseded{By: EventID{Turn: s.turn, Attempt: uint64(s.sequence.steps.attempt)}}
		}
		if s.newer != nil {
			l := *s.newer
			if s.pauses != nil {
				s.pauses = newPauses(l.event.TurnID)
			}
			s.newer, s.done, s.received = nil, false, 0
			s.sequence.restart(l.event.Attempt)
			if err := s.take(ctx, l); err != nil {
				return Item{}, err
			}
			return Item{}, &Superseded{By: EventID{Turn: l.event.TurnID, Attempt: uint64(l.event.Attempt)}}
		}
		switch err := s.step(ctx); {
		case errors.Is(err, errPaused):
			return s.pause()
		case err != nil:
			return Item{}, err
		}
	}
}

// eventIn returns a record's event; ok is false for a user's record and for a record without a valid event.
func eventIn(e topics.AgentEvent) (event fold.Event, ok bool) {
	if e.Author == topics.AuthorUser || e.Result != nil {
		return fold.Event{}, false
	}
	event, err := fold.DecodeEvent(e.Event)
	return event, err == nil
}

// item returns a record's event; ok is false for a user's record and for a record without a valid event.
func (s *pipelineStream) item(e topics.AgentEvent) (Item, bool) {
	event, ok := eventIn(e)
	if !ok {
		return Item{}, false
	}
	paused := false
	if s.sequence.steps != nil { // its end is that of its turn
		return Item{ID: positionOf(e), Event: event}, true
	}
	if s.pauses != nil {
		s.pauses.turn = e.TurnID // the request may name the turn by another ID
		paused = s.pauses.event(event, e.Seq, s.written)
	}
	switch {
	case paused:
		s.done = false
	case event.Type == "done":
		// A second done event that names a stop reason closes the turn. One without a reason repeats the first.
		reason, ok := event.Field("stopReason")
		s.closed = s.done && ok && kindOf(reason) != 'n'
		s.done = true
	}
	return Item{ID: positionOf(e), Event: event}, true
}

func positionOf(e topics.AgentEvent) EventID {
	return EventID{Turn: e.TurnID, Attempt: uint64(e.Attempt), Seq: uint64(e.Seq)}
}

// endOf returns the same end as the turn's batch message has. The error of a run that was OK does not make it a failure.
func endOf(r topics.AgentResult) fold.End {
	end := fold.EndOf(r)
	if r.OK {
		end.Error = ""
	}
	return end
}

// step waits for the next record and takes it. It returns io.EOF at the end of a turn without a terminal record.
func (s *pipelineStream) step(ctx context.Context) error {
	if len(s.matched) > 0 {
		l := s.matched[0]
		s.matched = s.matched[1:]
		return s.take(ctx, l)
	}
	if s.replay != nil {
		return s.stepReplay(ctx)
	}
	if s.failed != nil {
		failed := *s.failed
		s.failed = nil
		return s.outputError(failed)
	}
	l, ok, err := s.box.take()
	if err != nil {
		return err
	}
	if !ok {
		return s.wait(ctx)
	}
	switch {
	case l.failed != nil:
		return s.outputError(*l.failed)
	case l.answered != "":
		if l.answered == s.request {
			s.awaitEnd(errNoEvents)
		}
		return nil
	case l.outcome:
		s.touched = s.pipeline.rules.clock.Now()
		return nil
	case l.partition == s.from.partition && l.offset < s.from.end:
		return nil
	}
	return s.take(ctx, l)
}

// outputError returns an error if the pipeline answered the message with an error instead of events.
func (s *pipelineStream) outputError(o topics.Output) error {
	if o.RequestID == nil || *o.RequestID != s.request {
		return nil
	}
	err := &Error{Status: http.StatusBadGateway, Type: TypeUnknown, Code: string(o.Error.Code), Text: o.Error.Message}
	switch cancelled := "cancelled"; {
	case s.sequence.steps != nil:
	case o.Error.Code == topics.CodeCancelled, o.Error.Code == topics.CodeParentCannotAsk: // before its first event
		s.ready = append(s.ready, topics.AgentEvent{Result: &topics.AgentResult{OK: true, StopReason: &cancelled}})
		return nil
	default:
		return err
	}
	s.awaitEnd(err) // the stream of the turn ends with the same error
	return nil
}

// awaitEnd notes that the turn has an output, and how it ends if the record that ends its events does not follow.
func (s *pipelineStream) awaitEnd(otherwise error) {
	s.answered, s.unended = s.pipeline.rules.clock.Now(), otherwise
}

// take adds a record of the session to the sequence if it belongs to the turn.
func (s *pipelineStream) take(ctx context.Context, l sessionRecord) error {
	switch owned := s.owns(*l.event); {
	case !owned:
		s.keepUnmatched(l)
		return nil
	case s.turn == "":
		s.name(ctx, l)
		return nil
	}
	if s.first < 0 || l.offset < s.first {
		s.first = l.offset
	}
	s.touched = s.pipeline.rules.clock.Now()
	s.written = s.touched
	if l.past {
		s.written = earlier(s.touched, l.at)
	}
	seq, open := s.sequence.seq, s.sequence.open()
	if until := time.UnixMilli(l.event.UntilMS); l.event.UntilMS > 0 {
		s.quiet = until
	}
	ready, err := s.sequence.add(*l.event)
	switch {
	case errors.Is(err, errAttempt):
		s.newer = &l
		return nil
	case errors.Is(err, errReplaced):
		s.readAgain(ctx, l)
		return nil
	}
	if s.sequence.open() && (!open || s.sequence.seq > seq) {
		s.missingSince, s.gapInReplay = s.touched, l.past
		if l.past && l.at.Before(s.touched) {
			s.missingSince = l.at
		}
	}
	s.ready = append(s.ready, ready...)
	if err != nil {
		return s.gapError()
	}
	return nil
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

// wait blocks until the next record arrives or the turn times out. While a record is missing, the grace does not run: the
// missing record may be the done event with the stop reason.
func (s *pipelineStream) wait(ctx context.Context) error {
	rules := s.pipeline.rules
	quiet := s.touched
	if s.quiet.After(quiet) {
		quiet = s.quiet
	}
	until, late := quiet.Add(rules.silence), error(errSilent)
	pausedUntil, over, paused := s.pausedUntil()
	if paused && errors.Is(over, errPaused) && s.from.partition >= 0 && !s.caughtUp {
		s.caughtUp = true // another process may know of outcomes and events that this one has not read
		return s.pipeline.catchUp(ctx, s.session)
	}
	switch {
	case !s.answered.IsZero() && (s.turn == "" || s.sequence.steps != nil):
		until, late = s.answered.Add(rules.gap), s.unended
	case len(s.awaits) > 0:
		until, late = s.answerBy, errUnsettled
	case paused && !s.sequence.open():
		until, late = pausedUntil, over
	case s.sequence.open():
		until, late = s.missingSince.Add(rules.gap), s.gapError()
	case s.done:
		until, late = s.touched.Add(rules.grace), io.EOF
	}
	left := until.Sub(rules.clock.Now())
	if left <= 0 {
		return late
	}
	timer := rules.clock.NewTicker(left)
	defer timer.Stop()
	select {
	case <-s.box.arrived:
		return nil
	case <-timer.C():
		return late
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errNoEvents ends the stream of a turn that was answered without events, or without the one that ends it. The door would wait
// for them in vain.
var errNoEvents = &Error{
	Status: http.StatusBadGateway, Type: TypeUnknown, Code: "no_events",
	Text: "the turn has ended, but its events are missing: see turn.WithEvents",
}

// errSilent ends a turn without events for WithSilence.
var errSilent = &Error{
	Status: http.StatusGatewayTimeout, Type: TypeUnknown, Code: "expired", Text: "the agent has sent no event for too long",
}

// End implements Stream.
func (s *pipelineStream) End() fold.End { return s.end }

// Close implements Stream.
func (s *pipelineStream) Close() error {
	s.stopReplay()
	s.pipeline.hub.close(s.session, s.box)
	return nil
}
