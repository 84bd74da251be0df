package invoke

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// turn is the source of batches and streams: an agent's stream with numbered events and joined surrogate pairs, followed by
// a done event if the terminal result names another stop reason.
type turn struct {
	stream Stream
	joiner folder.SurrogateJoiner
	queue  []Item
	at     EventID    // ID of the last event
	named  bool       // the agent has named the turn
	reason topics.Raw // stop reason of the last done event; nil for none
	end    folder.End
	ended  bool
}

func newTurn(s Stream, fallback string) *turn {
	t := &turn{stream: s, at: EventID{Turn: fallback, Attempt: 1}}
	if named, ok := s.(Named); ok {
		t.at.Turn, t.named = named.TurnID(), true
	}
	return t
}

// next returns the next event that has a type. Every error but *Superseded is the end of the turn; io.EOF is its normal
// end.
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

// take numbers an event and queues the events that can be sent.
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
	t.push(t.at, t.joiner.Append(nil, item.Event), false)
}

// push queues events with the same ID. All but the last are partial; with more, the last is partial, too.
func (t *turn) push(id EventID, events []folder.Event, more bool) {
	for i, e := range events {
		t.queue = append(t.queue, Item{ID: id, Event: e, partial: more || i < len(events)-1})
	}
}

// finish queues the remaining events of the turn.
func (t *turn) finish() {
	t.ended = true
	t.end = t.stream.End()
	next := t.at
	next.Seq++
	t.push(next, t.joiner.Flush(nil), true)
	if t.corrects() {
		t.take(Item{Event: folder.Done(t.end.StopReason)})
	}
}

// superseded drops the state of the older attempt.
func (t *turn) superseded(err error) {
	var s *Superseded
	if errors.As(err, &s) {
		t.at, t.reason, t.joiner = s.By, nil, folder.SurrogateJoiner{}
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

// cancelled reports whether the stop reason of the turn's end, or else of its last done event, is "cancelled".
func (t *turn) cancelled() bool {
	reason := t.end.StopReason
	if kindOf(reason) != '"' {
		reason = t.reason
	}
	stop, _ := text(reason)
	return stop == "cancelled"
}

// failure returns the error that a turn ended with, nil for none.
func failure(end folder.End) *Error {
	switch {
	case end.Error != "" && end.Code != "": // of the turn, as in its output
		return &Error{Status: http.StatusBadGateway, Type: TypeUnknown, Code: end.Code, Text: end.Error}
	case end.Error != "":
		return &Error{Text: end.Error}
	case end.State == folder.Failed:
		return &Error{Text: runText}
	case end.State == folder.Expired:
		return &Error{Text: "the turn expired", Code: "expired"}
	}
	return nil
}

// outcome is the end of a stream.
type outcome struct {
	end       folder.End
	err       error // nil for a turn that did not fail
	at        EventID
	cancelled bool // the stop reason is "cancelled"
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

// state returns the turn's state for the end of a stream.
func (o outcome) state() folder.State {
	switch {
	case o.end.State != "" && o.end.State != folder.Open:
		return o.end.State
	case o.err != nil:
		return folder.Failed
	case o.cancelled:
		return folder.Cancelled
	}
	return folder.Complete
}
