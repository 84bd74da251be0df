package fold

import (
	"github.com/turntable-streams/turntable/topics"
)

// Fold folds a whole turn, as a Folder does. The stop reason is that of the events; where a terminal result names
// another, use a Folder.
func Fold(events []Event, opts ...Option) (Batch, error) {
	f := NewFolder(opts...)
	for _, e := range events {
		if err := f.Add(e); err != nil {
			return Batch{}, err
		}
	}
	return f.Batch(End{})
}

// FoldJSON folds a turn given as a JSON array of events, in either encoding, with its terminal result's stop reason if
// there is one. It fails with ErrEvents for what is no JSON array, with ErrDepth and as
// Folder.Batch does.
func FoldJSON(events, stopReason topics.Raw, opts ...Option) (Batch, error) {
	f := NewFolder(opts...)
	if err := f.AddJSON(events); err != nil {
		return Batch{}, err
	}
	return f.Batch(End{StopReason: stopReason})
}

// Option changes how events are folded.
type Option func(*settings)

type settings struct{ strict bool }

// Strict makes a malformed event an error that wraps ErrMalformed. By default folding is tolerant: a malformed event is
// left out whole and counted in Batch.Malformed.
func Strict() Option { return func(s *settings) { s.strict = true } }

// End is what is known of a turn's end beside its events.
type End struct {
	// StopReason is the terminal result's: a JSON string, which wins over that of the events; nil or null for none.
	StopReason topics.Raw
	// State is the outcome, if the caller knows it. Empty, it is derived from the events: see Batch.State.
	State State
	// Error is the terminal result's error text; empty, that of the last error event counts.
	Error string
}

// State is how far a turn came.
type State string

// The states of a turn.
const (
	Open      State = "open"
	Complete  State = "complete"
	Failed    State = "failed"
	Expired   State = "expired"
	Cancelled State = "cancelled"
)
