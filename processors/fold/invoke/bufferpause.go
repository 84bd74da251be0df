package invoke

import (
	"errors"
	"io"
	"slices"

	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// errEnd is the error of a run that has ended normally.
var errEnd = io.EOF

// end ends a run: the turn ends, or it waits for answers.
func (b *Buffered) end(err error, s Stream, rec *recording) {
	end, err := endAndClose(err, s)
	if errors.Is(err, io.EOF) && b.continuer != nil && failure(end) == nil {
		if b.stopReason(rec, end) == stopPaused {
			var paused bool
			if paused, err = b.pause(rec, end); paused {
				return
			}
		}
	}
	freed := rec.close(err, end, b.config.Clock.Now())
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count(rec, -freed)
}

func someOpen(list []ask) bool { return slices.ContainsFunc(list, func(a ask) bool { return a.open }) }

// errAsked ends a turn with too many interaction requests.
var errAsked = &Error{Code: "too_many", Text: "the turn has too many interaction requests"}

// pause makes a run that has ended with the stop reason "paused" wait for answers; false if it has no open interaction. The
// error ends the turn.
func (b *Buffered) pause(rec *recording, end folder.End) (paused bool, err error) {
	// Only the run, which has ended, changes the events and the attempt.
	list, ok := askedIn(rec.events, int64(rec.attempt), rec.asks.list)
	switch {
	case !ok:
		return false, errAsked
	case !someOpen(list):
		return false, errEnd
	}
	kept := sizeOfAsks(list) + sizeOfRequest(rec.asks.began)
	for _, a := range rec.asks.list {
		if a.attempt != int64(rec.attempt) {
			kept += sizeOfAsks([]ask{a})
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	more := kept - rec.asks.kept
	if b.grow(rec, more) || rec.held()+more > b.config.TurnBytes {
		b.count(rec, -more)
		return false, errLarge
	}
	now := b.config.Clock.Now()
	rec.pause(end, list, kept, now, now.Add(b.config.PauseTimeout))
	return true, nil
}

// stopReason returns the stop reason of a run that has ended normally: that of its terminal result, or else of its last done event.
// If the turn has paused or pauses now, its events must have it, because other events can follow, and because the turn has an
// older done event. The door adds this event to other turns.
func (b *Buffered) stopReason(rec *recording, end folder.End) string {
	reason, done := lastDone(rec.events[rec.asks.seq:])
	if terminal := end.StopReason; kindOf(terminal) == '"' && !topics.Equal(terminal, first(reason)) {
		reason, done = terminal, false
	}
	stop, _ := text(reason)
	if !done && (rec.asks.seq > 0 || stop == stopPaused) {
		e := folder.Done(reason)
		size := len(e.Data()) + eventCost
		rec.add(e, size)
		b.mu.Lock()
		b.count(rec, size)
		b.mu.Unlock()
	}
	return stop
}

// lastDone returns the stop reason of the last done event; done is false if there is none.
func lastDone(events []folder.Event) (reason topics.Raw, done bool) {
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].Type == "done" {
			reason, _ := events[i].Field("stopReason")
			return reason, true
		}
	}
	return nil, false
}
