package delivery

// Why an attempt failed, or a delivery was given up. The texts are for people and for alerts: they stay as they are.
const (
	// ReasonUnknownService: the service is not in the sink's registry.
	ReasonUnknownService = "unknown service"
	// ReasonInterrupted: the sink was stopped during the attempt.
	ReasonInterrupted = "sink was stopped"
	// ReasonBusy: the sink has too many attempts on their way on the route. It is no failure.
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

// Why a record is dead-lettered.
const (
	reasonTombstone = "delivery: tombstone"
	reasonRouteSize = "delivery: route is too large"
	reasonRouteRoom = "delivery: no room in the session's row"
	reasonNotDead   = "delivery: no dead delivery of that id is kept"
	reasonBroken    = "delivery: the record cannot be applied"
)
