package delivery

import "github.com/turntable-streams/turntable/topics"

// The reasons in receipts and dead deliveries. Sinks and rows of other builds contain them and this package compares
// them, so the texts must not change.
const (
	// ReasonUnknownService states that the service is not in the sink's registry.
	ReasonUnknownService = "unknown service"
	// ReasonInterrupted states that the sink was stopped during the attempt.
	ReasonInterrupted = topics.ReasonInterrupted
	// ReasonBusy states that the sink has too many attempts in flight on the route. It is not a failure.
	ReasonBusy = "too many attempts on their way"

	reasonLost     = "no receipt came"
	reasonExpired  = "expired"
	reasonBudget   = "retry time is spent"
	reasonAttempts = "attempts are spent"
	reasonCircuit  = "retry time is spent, the route's circuit is open"
	reasonRefused  = "refused: "
	reasonNoRoute  = "its reply route did not come"
	reasonTooLarge = "does not fit into a record"
	reasonNoRoom   = "no room in the session's row"
	reasonTooMany  = "too many open deliveries in the session"
)

// The reasons of dead letters, in their error.reason header.
const (
	reasonTombstone = "delivery: tombstone"
	reasonRouteSize = "delivery: route is too large"
	reasonRouteRoom = "delivery: no room in the session's row"
	reasonOrigin    = "delivery: its origin is invalid or too large: it is not delivered"
	reasonNoOrigin  = "delivery: it has no origin to be delivered to"
	reasonNotDead   = "delivery: no dead delivery of that id is kept"
	reasonBroken    = "delivery: the record cannot be applied"
)
