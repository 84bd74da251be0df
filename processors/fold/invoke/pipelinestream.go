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
	pipeline *Pipeline
	session  string
	request  string // the request's id
	turn     string // the turn's, once it is known
	box      *inbox
	past     *replay            // nil when there is none, or no more
	forget   context.CancelFunc // ends past
	from     int64              // live events before it are past ones

	nameless []letter // the latest of turns that may turn out to be this one
	bytes    int      // of these
	found    []letter // those that did

	sequence sequence
	has      int64 // seq of the last record of the attempt that the client has
	ready    []topics.AgentEvent
	held     *letter   // the first of a newer attempt
	touched  time.Time // when the turn's last record came
	missing  time.Time // since when a record is missing, where the sequence is open
	cut      bool      // the record behind the missing one was found in the past
	done     bool      // a done event came
	closed   bool      // a second one did, with a reason: it is the last
	end      fold.End
}

// TurnID implements Named. A turn that has a name of its own is found by its request's, too.
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
				s.end = endOf(*e.Result)
				return Item{}, io.EOF
			}
			if item, ok := s.item(e); ok {
				return item, nil
			}
		}
		if s.held != nil {
			l := *s.held
			s.held, s.done, s.has = nil, false, 0
			s.sequence.restart(l.event.Attempt)
			if err := s.take(l); err != nil {
				return Item{}, err
			}
			return Item{}, &Superseded{By: EventID{Turn: l.event.TurnID, Attempt: uint64(l.event.Attempt)}}
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
	event, err := fold.DecodeEvent(e.Event)
	if err != nil {
		return Item{}, false
	}
	if event.Type == "done" {
		// The first may be corrected by a second one, which names the reason; a repeat of the first does not.
		reason, ok := event.Field("stopReason")
		s.closed = s.done && ok && kindOf(reason) != 'n'
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
		l := s.found[0]
		s.found = s.found[1:]
		return s.take(l)
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
	return s.take(l)
}

// refused is the error of a message that the pipeline answered with an error output, and no turn of events.
func (s *pipelineStream) refused(o topics.Output) error {
	if o.RequestID == nil || *o.RequestID != s.request {
		return nil
	}
	return &Error{Status: http.StatusBadGateway, Type: TypeUnknown, Code: string(o.Error.Code), Text: o.Error.Message}
}

// take puts a record of the turn into its place.
func (s *pipelineStream) take(l letter) error {
	switch owned := s.owns(*l.event); {
	case !owned:
		s.wonder(l)
		return nil
	case s.turn == "":
		s.name(l)
		return nil
	}
	s.touched = s.pipeline.rules.clock.Now()
	seq, open := s.sequence.seq, s.sequence.open()
	ready, err := s.sequence.add(*l.event)
	if errors.Is(err, errAttempt) {
		s.held = &l
		return nil
	}
	if s.sequence.open() && (!open || s.sequence.seq > seq) {
		s.missing, s.cut = s.touched, l.past
		if l.past && l.at.Before(s.touched) {
			s.missing = l.at
		}
	}
	s.ready = append(s.ready, ready...)
	if err != nil {
		return s.gapError()
	}
	return nil
}

// wonder keeps a record of a turn that has a name of its own, until one of that turn says whose it is: the record that
// does may come late.
func (s *pipelineStream) wonder(l letter) {
	if s.turn != "" {
		return
	}
	s.nameless, s.bytes = append(s.nameless, l), s.bytes+sizeOf(*l.event)
	for len(s.nameless) > heldRecords || s.bytes > heldBytes {
		s.bytes -= sizeOf(*s.nameless[0].event)
		s.nameless = s.nameless[1:]
	}
}

// name finds the turn, by one of its records. What came of it before is taken before that.
func (s *pipelineStream) name(l letter) {
	s.turn = l.event.TurnID
	for _, before := range s.nameless {
		if before.event.TurnID == s.turn {
			s.found = append(s.found, before)
		}
	}
	s.found, s.nameless, s.bytes = append(s.found, l), nil, 0
}

// owns reports whether a record is of the turn that is waited for.
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

// wait waits for the next record, at most until the turn is given up. A missing record is waited for before a terminal
// one: it may be the done event with the stop reason.
func (s *pipelineStream) wait(ctx context.Context) error {
	rules := s.pipeline.rules
	until, late := s.touched.Add(rules.silence), error(errSilent)
	switch {
	case s.sequence.open():
		until, late = s.missing.Add(rules.gap), s.gapError()
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
