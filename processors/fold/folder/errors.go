package folder

import (
	"errors"

	"github.com/turntable-streams/turntable/topics"
)

// MaxDepth is the maximum nesting depth of an event's data. Data within this limit can be decoded in every record that
// contains it, events and batches.
const MaxDepth = topics.MaxValueDepth

// Errors of folding. No error text contains event data.
var (
	// ErrSyntax is returned for an event that is not JSON in UTF-8.
	ErrSyntax = errors.New("fold: event is not JSON")
	// ErrEvents is returned for events that are not a JSON array.
	ErrEvents = errors.New("fold: events are not a JSON array")
	// ErrDepth is returned for an event whose data is nested deeper than MaxDepth.
	ErrDepth = errors.New("fold: event is nested too deep")
	// ErrMalformed is wrapped by errors about JSON that is not a valid event.
	ErrMalformed = errors.New("fold: malformed event")
	// ErrStopReason is returned for a terminal stop reason that is neither a string nor null.
	ErrStopReason = errors.New("fold: terminal stop reason is not a string")
	// ErrLog is returned for bytes that are not a Log.
	ErrLog = errors.New("fold: unknown or damaged log")
)
