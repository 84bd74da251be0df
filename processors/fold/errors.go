package fold

import (
	"errors"

	"github.com/turntable-streams/turntable/topics"
)

// MaxDepth is how deep an event's data may nest, in stream and batch alike: what is accepted here stays readable in
// every record that carries it.
const MaxDepth = topics.MaxValueDepth

// Errors of folding. None quotes an event.
var (
	ErrSyntax     = errors.New("fold: event is not JSON")
	ErrEvents     = errors.New("fold: the events are no JSON array")
	ErrDepth      = errors.New("fold: event is nested too deep")
	ErrMalformed  = errors.New("fold: malformed event")
	ErrStopReason = errors.New("fold: the terminal stop reason is no string")
	ErrLog        = errors.New("fold: unknown or damaged log")
)
