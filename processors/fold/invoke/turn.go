package invoke

import (
	"context"
	"errors"
	"io"

	"github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/topics"
)

// turn is the one source that batches and streams are made of: an agent's stream, numbered, with characters that were
// cut in two made whole, and ended by the done event that its terminal result asks for.
type turn struct {
	stream Stream
	mender fold.Mender
	queue  []Item
	at     EventID    // the last event's
	named  bool       // the agent has said what turn it is
	reason topics.Raw // the last done event's; nil for none
	end    fold.End
	ended  bool
}

func newTurn(s Stream, fallback string) *turn {
	t := &turn{stream: s, at: EventID{Turn: fallback, Attempt: 1}}
	if named, ok := s.(Named); ok {
		t.at.Turn, t.named = named.TurnID(), true
	}
	return t
}

// next is the next event that has a type. io.EOF, and everything else but *Superseded, is the end.
func (t *turn) next(ctx context.Context) (Item, error) {
	for len(t.queue) == 0 {
		if t.ended {
			return Item{}, io.EOF
		}
		item, err := t.stream.Next(ctx)
		switch {
		case err == io.EOF:
			t.finish()
		case err != nil:
			t.superseded(err)
			return Item{}, err
		default:
			t.take(item)
		}
	}
	item := t.queue[0]
	t.queue = t.queue[1:]
	return item, nil
}

// take numbers an event and puts what can be sent on into the queue.
func (t *turn) take(item Item) {
	if item.ID == (EventID{}) {
		item.ID = t.at
		item.ID.Seq++
	} else {
		t.named = true
	}
	t.at = item.ID
	switch item.Event.Type {
	case "":
		return
	case "done":
		t.reason, _ = item.Event.Field("stopReason")
	}
	t.push(t.at, t.mender.Append(nil, item.Event), false)
}

// push puts events of one number into the queue; the last stands for all unless there is more to come.
func (t *turn) push(id EventID, events []fold.Event, more bool) {
	for i, e := range events {
		t.queue = append(t.queue, Item{ID: id, Event: e, partial: more || i < len(events)-1})
	}
}

// finish puts what is left of the turn into the queue.
func (t *turn) finish() {
	t.ended = true
	t.end = t.stream.End()
	behind := t.at
	behind.Seq++
	t.push(behind, t.mender.Flush(nil), true)
	if t.corrects() {
		t.take(Item{Event: fold.Done(t.end.StopReason)})
	}
}

// superseded forgets what belongs to the attempt before.
func (t *turn) superseded(err error) {
	var s *Superseded
	if errors.As(err, &s) {
		t.at, t.reason, t.mender = s.By, nil, fold.Mender{}
	}
}

// corrects reports whether the terminal result names another stop reason than the last done event.
func (t *turn) corrects() bool {
	if kindOf(t.end.StopReason) != '"' || failure(t.end) != nil {
		return false
	}
	want, _ := text(t.end.StopReason)
	got, ok := text(t.reason)
	return !ok || want != got
}

// cancelled reports whether the turn's stop reason, that of its end or else of its last done event, says so.
func (t *turn) cancelled() bool {
	reason := t.end.StopReason
	if kindOf(reason) != '"' {
		reason = t.reason
	}
	stop, _ := text(reason)
	return stop == "cancelled"
}

// failure is the error that a turn ended with, nil for none.
func failure(end fold.End) *Error {
	switch {
	case end.Error != "":
		return &Error{Text: end.Error}
	case end.State == fold.Failed:
		return &Error{Text: runText}
	case end.State == fold.Expired:
		return &Error{Text: "the turn expired", Code: "expired"}
	}
	return nil
}

// outcome is how a stream ends.
type outcome struct {
	end       fold.End
	err       error // nil for a turn that did not fail
	at        EventID
	cancelled bool // so says its stop reason
}

func (t *turn) outcome(err error) outcome {
	o := outcome{end: t.end, err: err, at: t.at, cancelled: t.cancelled()}
	if errors.Is(err, io.EOF) {
		o.err = nil
		if failed := failure(t.end); failed != nil {
			o.err = failed
		}
	}
	return o
}

// state is the turn's state as a stream names it.
func (o outcome) state() fold.State {
	switch {
	case o.end.State != "" && o.end.State != fold.Open:
		return o.end.State
	case o.err != nil:
		return fold.Failed
	case o.cancelled:
		return fold.Cancelled
	}
	return fold.Complete
}
