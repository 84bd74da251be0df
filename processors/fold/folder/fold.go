package folder

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

// Fold folds all events of a turn. The stop reason is that of the last done event; use a Folder if the turn has a
// terminal result. It fails as Folder.Add and Folder.Batch do.
func Fold(events []Event, opts ...Option) (Batch, error) {
	f := NewFolder(opts...)
	for _, e := range events {
		if err := f.Add(e); err != nil {
			return Batch{}, err
		}
	}
	return f.Batch(End{})
}

// FoldJSON folds a JSON array of events, each in either encoding. stopReason is the terminal result's, a JSON string, or
// nil. It fails as Folder.AddJSON and Folder.Batch do.
func FoldJSON(events, stopReason topics.Raw, opts ...Option) (Batch, error) {
	f := NewFolder(opts...)
	if err := f.AddJSON(events); err != nil {
		return Batch{}, err
	}
	return f.Batch(End{StopReason: stopReason})
}

// Option configures a Folder.
type Option func(*settings)

type settings struct{ strict bool }

// Strict makes a malformed event an error that wraps ErrMalformed. By default a malformed event is left out and counted
// in Batch.Malformed.
func Strict() Option { return func(s *settings) { s.strict = true } }

// End describes the end of a turn, in addition to its events.
type End struct {
	// StopReason is the terminal result's stop reason, a JSON string. It takes precedence over that of the events. Nil
	// and null mean none.
	StopReason topics.Raw
	// State is the outcome, if the caller knows it. If it is empty, it is derived from the events: see Batch.State.
	State State
	// Error is the terminal result's error text. If it is empty, the text of the last error event is used.
	Error string
	// Code is the terminal result's code of the error, empty for none. It is not part of a batch.
	Code string
	// Decided are the indexes of interaction requests that were decided, in ascending order, also without an event that
	// answers them: see Interaction. They are not in Batch.Pending, and Batch.PendingInteraction is the last of the others.
	Decided []int
}

// State is the state of a turn.
type State string

// The states of a turn.
const (
	Open      State = "open"
	Complete  State = "complete"
	Failed    State = "failed"
	Expired   State = "expired"
	Cancelled State = "cancelled"
)

// stopCancelled is the stop reason of a run that was cancelled.
const stopCancelled = "cancelled"

// EndOf returns the end of a turn with that terminal record: expired if the run was not OK because its model gave no answer in
// time, otherwise failed if it was not OK, cancelled if that is its stop reason, otherwise complete. Error events do not change
// it.
func EndOf(r topics.AgentResult) End {
	e := End{State: Complete, Code: string(r.Code)}
	if r.StopReason != nil {
		e.StopReason, _ = jsontext.AppendQuote(nil, *r.StopReason) // the error reports invalid UTF-8, which was replaced
	}
	switch {
	case !r.OK && r.Code == topics.CodeThinkTimeout:
		e.State = Expired
	case !r.OK:
		e.State = Failed
	case r.StopReason != nil && *r.StopReason == stopCancelled:
		e.State = Cancelled
	}
	if r.Error != nil {
		e.Error = *r.Error
	}
	return e
}
