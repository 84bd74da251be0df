package invoke

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// pipelineStream is one turn, read from the topic.
type pipelineStream struct {
	pipeline     *Pipeline
	session      string
	request      string // the request's id
	turn         string // the turn's id, empty until a record of it names the request
	waits        string // the gate that was open when the message was written, empty for none
	box          *inbox
	replay       *replay            // nil if there is no replay or it has ended
	cancelReplay context.CancelFunc // cancels replay
	from         section            // live events in it were in the replay
	first        int64              // the offset of the turn's first record that was taken; -1 before
	caller       string             // who takes turns with others
	failed       *topics.Output     // known from the index: the pipeline answered with an error

	unmatched      []sessionRecord // the last records of turns that may be this one
	unmatchedBytes int
	void           []string        // turns without a stream, see isVoid
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
	lost         bool           // records are missing for good: no later ones are read
	terminal     bool           // the terminal record was read
	ended        *turnEnd       // the end of the turn, if the fold group has ended it
	end          folder.End

	// With PipelineConfig.Gates only. written is about when the last record was written.
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
		for len(s.ready) > 0 {
			e := s.ready[0]
			s.ready = s.ready[1:]
			switch {
			case s.ended.passedBy(e.Attempt, e.Seq), e.Result != nil && s.pausesAt(e):
			case e.Result != nil:
				if item, ok := s.lastDone(e); ok {
					return item, nil
				}
				if stop := e.Result.StopReason; stop == nil || *stop != stopPaused { // the fold group may wait for decisions
					s.terminal = true
					s.awaitEnd(errNoBatch)
				}
			default:
				if item, ok := s.item(e); ok {
					return item, nil
				}
			}
		}
		if s.over() {
			if s.lost && s.ended.state == folder.Complete { // the fold group could wait for longer
				return Item{}, errGap
			}
			s.end = s.ending(s.ended.end())
			return Item{}, io.EOF
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
			s.newer, s.terminal, s.received = nil, false, 0
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
func eventIn(e topics.AgentEvent) (event folder.Event, ok bool) {
	if e.Author == topics.AuthorUser || e.Result != nil {
		return folder.Event{}, false
	}
	event, err := folder.DecodeEvent(e.Event)
	return event, err == nil
}

// item returns a record's event; ok is false for a user's record and for a record without a valid event.
func (s *pipelineStream) item(e topics.AgentEvent) (Item, bool) {
	event, ok := eventIn(e)
	if !ok {
		return Item{}, false
	}
	if s.pauses != nil && s.sequence.steps == nil { // a turn with steps does not pause
		s.pauses.turn = e.TurnID // the request may name the turn by another ID
		s.pauses.event(event, e.Seq, s.written)
	}
	return Item{ID: positionOf(e), Event: event}, true
}

func positionOf(e topics.AgentEvent) EventID {
	return EventID{Turn: e.TurnID, Attempt: uint64(e.Attempt), Seq: uint64(e.Seq)}
}

// over reports whether the turn has ended and its events were read. Without those that are missing for good, its batch has no more
// either.
func (s *pipelineStream) over() bool {
	return s.ended != nil && s.newer == nil && (s.terminal || s.lost || s.ended.passedBy(s.sequence.attempt, s.sequence.seq+1))
}

// finish notes how the fold group has ended the turn.
func (s *pipelineStream) finish(e *turnEnd) {
	if s.ended == nil && e != nil && e.turn == s.turn {
		s.ended, s.touched = e, s.pipeline.config.Clock.Now()
	}
}

// step waits for the next record and takes it. It returns io.EOF at the end of a turn that was cancelled before its first event.
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
	case l.end != nil:
		s.finish(l.end)
		return nil
	case l.outcome:
		s.touched = s.pipeline.config.Clock.Now()
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
	switch {
	case s.turn != "": // the fold group says how it ends
		s.awaitEnd(err)
		return nil
	case o.Error.Code == topics.CodeCancelled, o.Error.Code == topics.CodeParentCannotAsk: // before its first event
		s.end = folder.End{State: folder.Cancelled, StopReason: quote(string(folder.Cancelled))}
		return io.EOF
	default:
		return err
	}
}

// awaitEnd notes that the turn has an output or its last record, and the error if its batch does not follow.
func (s *pipelineStream) awaitEnd(otherwise error) {
	s.answered, s.unended = s.pipeline.config.Clock.Now(), otherwise
}

// take adds a record of the session to the sequence if it belongs to the turn.
func (s *pipelineStream) take(ctx context.Context, l sessionRecord) error {
	if s.isVoid(*l.event) {
		return nil
	}
	switch owned := s.owns(*l.event); {
	case !owned:
		s.keepUnmatched(l)
		return nil
	case s.turn == "":
		s.name(ctx, l)
		return nil
	case s.lost:
		return nil
	}
	if s.first < 0 || l.offset < s.first {
		s.first = l.offset
	}
	s.touched = s.pipeline.config.Clock.Now()
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
		if !s.terminal && !s.ended.passedBy(l.event.Attempt, 0) {
			s.newer = &l
		}
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
	if err == nil {
		return nil
	}
	if s.gapInReplay && s.unread() {
		return ErrGone
	}
	s.lost = true
	s.awaitEnd(errNoBatch)
	return nil
}

// wait blocks until the next record arrives, or for as long as one may take. The fold group ends turns that are silent, or whose
// records are missing: it gets the time to do so.
func (s *pipelineStream) wait(ctx context.Context) error {
	config := s.pipeline.config
	quiet := s.touched
	if s.quiet.After(quiet) {
		quiet = s.quiet
	}
	until, late := quiet.Add(config.Silence), error(errSilent)
	pausedUntil, over, paused := s.pausedUntil()
	if paused && s.ended == nil && errors.Is(over, errPaused) && s.from.partition >= 0 && !s.caughtUp {
		s.caughtUp = true // another process may know of outcomes and events that this one has not read
		return s.pipeline.catchUp(ctx, s.session)
	}
	if s.turn != "" {
		until = until.Add(config.gap)
	}
	switch {
	case s.ended != nil:
		until, late = s.touched.Add(config.gap), errGap
	case !s.answered.IsZero() && (s.turn == "" || s.sequence.steps != nil || !errors.Is(s.unended, errNoEvents)):
		until, late = s.answered.Add(config.gap), s.unended
	case len(s.awaits) > 0:
		until, late = s.answerBy, errUnsettled
	case paused && !s.sequence.open():
		until, late = pausedUntil, over
	case s.sequence.open() && s.gapInReplay && s.unread():
		until, late = s.missingSince.Add(config.gap), ErrGone
	}
	left := until.Sub(config.Clock.Now())
	if left <= 0 {
		return late
	}
	timer := config.Clock.NewTicker(left)
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
	Text: "the turn has ended, but its events are missing: see turn.Config.Events",
}

// errNoBatch ends the stream of a turn with its last event whose end is not known.
var errNoBatch = &Error{
	Status: http.StatusBadGateway, Type: TypeUnknown, Code: "no_batch",
	Text: "the agent has sent its last event, but the turn has no batch: see package fold",
}

// errSilent ends the wait for an event. It is not the end of the turn: the client can resume.
var errSilent = &Error{
	Status: http.StatusGatewayTimeout, Type: TypeUnknown, Code: "silent", Text: "the agent has sent no event for too long",
}

// End implements Stream.
func (s *pipelineStream) End() folder.End { return s.end }

// Close implements Stream.
func (s *pipelineStream) Close() error {
	s.stopReplay()
	s.pipeline.hub.close(s.session, s.box)
	return nil
}
