package invoke

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/topics"
)

// pipelineStream is one turn, read from the topic.
type pipelineStream struct {
	pipeline *Pipeline
	session  string
	request  string // the request's id
	turn     string // the turn's, once it is known
	box      *inbox
	past     *replay            // nil when there is none, or no more
	forget   context.CancelFunc // ends past
	from     int64              // live events before it are past ones

	nameless []topics.AgentEvent // the latest of turns that may turn out to be this one
	bytes    int                 // of these
	found    []topics.AgentEvent // those that did

	sequence sequence
	ready    []topics.AgentEvent
	held     *topics.AgentEvent // the first of a newer attempt
	touched  time.Time          // when the turn's last record came
	done     bool               // a done event came
	closed   bool               // a second one did, with a reason: it is the last
	end      fold.End
}

// TurnID implements Named. A turn that has a name of its own is found by its request's, too.
func (s *pipelineStream) TurnID() string { return s.request }

// replayFrom has the turn's events of the past read before the live ones.
func (s *pipelineStream) replayFrom(ctx context.Context, since time.Time) {
	ctx, s.forget = context.WithCancel(ctx)
	p := s.pipeline
	s.past = p.hub.replay(ctx, p.follower, s.session, since, p.replays)
}

// prime waits until the turn was found, or is known not to be there: an error where it has to be.
func (s *pipelineStream) prime(ctx context.Context, must bool) error {
	for len(s.ready) == 0 && s.held == nil && !s.sequence.open() && (s.past != nil || len(s.found) > 0) {
		if err := s.step(ctx); err != nil {
			return err
		}
	}
	if must && len(s.ready) == 0 && s.held == nil && !s.sequence.open() {
		return ErrGone
	}
	return nil
}

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
				s.end = endOf(*e.Result)
				return Item{}, io.EOF
			}
			if item, ok := s.item(e); ok {
				return item, nil
			}
		}
		if s.held != nil {
			e := *s.held
			s.held, s.done = nil, false
			s.sequence.restart(e.Attempt)
			if err := s.take(e); err != nil {
				return Item{}, err
			}
			return Item{}, &Superseded{By: EventID{Turn: e.TurnID, Attempt: uint64(e.Attempt)}}
		}
		if err := s.step(ctx); err != nil {
			return Item{}, err
		}
	}
}

// item is a record's event; user's records, and what is no event, are none.
func (s *pipelineStream) item(e topics.AgentEvent) (Item, bool) {
	if e.Author == topics.AuthorUser {
		return Item{}, false
	}
	event, err := fold.DecodeEvent(jsontext.Value(e.Event))
	if err != nil {
		return Item{}, false
	}
	if event.Type == "done" {
		// The first may be corrected by a second one, which names the reason; a repeat of the first does not.
		reason, ok := event.Field("stopReason")
		s.closed = s.done && ok && reason.Kind() != 'n'
		s.done = true
	}
	return Item{ID: EventID{Turn: e.TurnID, Attempt: uint64(e.Attempt), Seq: uint64(e.Seq)}, Event: event}, true
}

// endOf is the end that the batch on the topic has. What a run that was ok says of an error is no failure of it.
func endOf(r topics.AgentResult) fold.End {
	end := fold.EndOf(r)
	if r.OK {
		end.Error = ""
	}
	return end
}

// step waits for the next record and takes it. io.EOF is the end of a turn without a terminal record.
func (s *pipelineStream) step(ctx context.Context) error {
	if len(s.found) > 0 {
		e := s.found[0]
		s.found = s.found[1:]
		return s.take(e)
	}
	if s.past != nil {
		return s.stepBack(ctx)
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
		return s.refused(*l.failed)
	case l.offset < s.from:
		return nil
	}
	return s.take(*l.event)
}

// stepBack takes the next record of the past.
func (s *pipelineStream) stepBack(ctx context.Context) error {
	select {
	case l, ok := <-s.past.letters:
		switch {
		case ok && l.failed != nil:
			return s.refused(*l.failed)
		case ok:
			return s.take(*l.event)
		}
		past := s.past
		s.past, s.from = nil, past.next
		s.forget()
		if errors.Is(past.err, processors.ErrNotFollowing) {
			return errStarting // the brokers are away
		}
		return past.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// refused is the error of a message that the pipeline answered with an error output, and no turn of events.
func (s *pipelineStream) refused(o topics.Output) error {
	if o.RequestID == nil || *o.RequestID != s.request {
		return nil
	}
	return &Error{Status: http.StatusBadGateway, Type: TypeUnknown, Code: string(o.Error.Code), Text: o.Error.Message}
}

// take puts a record of the turn into its place.
func (s *pipelineStream) take(e topics.AgentEvent) error {
	switch owned := s.owns(e); {
	case !owned:
		s.wonder(e)
		return nil
	case s.turn == "":
		s.name(e)
		return nil
	}
	s.touched = s.pipeline.rules.clock.Now()
	ready, err := s.sequence.add(e)
	if errors.Is(err, errAttempt) {
		s.held = &e
		return nil
	}
	s.ready = append(s.ready, ready...)
	return err
}

// wonder keeps a record of a turn that has a name of its own, until one of that turn says whose it is: the record that
// does may come late.
func (s *pipelineStream) wonder(e topics.AgentEvent) {
	if s.turn != "" {
		return
	}
	s.nameless, s.bytes = append(s.nameless, e), s.bytes+sizeOf(e)
	for len(s.nameless) > heldRecords || s.bytes > heldBytes {
		s.bytes -= sizeOf(s.nameless[0])
		s.nameless = s.nameless[1:]
	}
}

// name finds the turn, by one of its records. What came of it before is taken before that.
func (s *pipelineStream) name(e topics.AgentEvent) {
	s.turn = e.TurnID
	for _, before := range s.nameless {
		if before.TurnID == s.turn {
			s.found = append(s.found, before)
		}
	}
	s.found, s.nameless, s.bytes = append(s.found, e), nil, 0
}

// owns reports whether a record is of the turn that is waited for.
func (s *pipelineStream) owns(e topics.AgentEvent) bool {
	if s.turn != "" {
		return e.TurnID == s.turn
	}
	if e.TurnID == s.request {
		return true
	}
	of := member(member(member(jsontext.Value(e.Request), "latest_input"), "metadata"), "request_id")
	id, ok := text(of)
	return ok && id == s.request
}

// wait waits for something to come. What may stay away for ever is given up.
func (s *pipelineStream) wait(ctx context.Context) error {
	limit, late := s.pipeline.rules.silence, error(errSilent)
	switch {
	case s.done:
		limit, late = s.pipeline.rules.grace, io.EOF
	case s.sequence.open():
		limit, late = s.pipeline.rules.gap, errGap
	}
	left := limit - s.pipeline.rules.clock.Now().Sub(s.touched)
	if left <= 0 {
		return late
	}
	timer := s.pipeline.rules.clock.NewTicker(left)
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

// errSilent says that the turn's events stopped coming, or never came.
var errSilent = &Error{
	Status: http.StatusGatewayTimeout, Type: TypeUnknown, Code: "expired", Text: "nothing came from the agent any more",
}

// End implements Stream.
func (s *pipelineStream) End() fold.End { return s.end }

// Close implements Stream.
func (s *pipelineStream) Close() error {
	if s.forget != nil {
		s.forget()
	}
	if s.past != nil {
		for range s.past.letters { // until it has ended
			continue
		}
	}
	s.pipeline.hub.close(s.session, s.box)
	return nil
}
