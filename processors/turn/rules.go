package turn

import (
	"github.com/turntable-streams/turntable/internal/envoption"
	"github.com/turntable-streams/turntable/processors/turn/internal/limits"
)

// rules configure the transition: a complete Config, and what Graph knows besides.
type rules struct {
	Config
	// Agent is the agent's name, which the requests of gates state as their origin.
	Agent string
	// EventsExist says that the topic of the events exists, so that a turn can end a stream that a worker has begun.
	EventsExist bool
	// accepted are the limits of topics that accept less than RecordLimit.
	accepted topicLimits
}

// rowMargin is how much smaller a row must be than a record: space for the key, the record's frame and a later deadline.
const rowMargin = 64 << 10

// Fixed bounds. Normal use does not reach them; they stop a faulty or malicious producer from filling the row.
const (
	maxID         = limits.MaxID         // bytes of an id, a name, a role, a timestamp
	maxCalls      = 1000                 // tool calls of one think-response
	maxHeld       = 2000                 // records held for the open step, and for steps to come; their bytes are bounded by the row
	maxRoutes     = 256                  // open routes of a session; a new one evicts the oldest
	maxUsedRoutes = 256                  // used routes whose tombstones are awaited
	maxDescriptor = limits.MaxDescriptor // bytes of a reply descriptor
	maxSteps      = 64                   // closed think steps that are remembered, to recognise late responses
	maxReason     = 512                  // bytes of foreign text in an error message
	minHistory    = 1 << 10              // minimum of History.Bytes
	minRecord     = envoption.MinRecordLimit
)
