// Package delivery brings an agent's outputs to whoever asked: every output with a reply route becomes a delivery, and
// every delivery ends in one final receipt, delivered or dead with the reason.
//
//	message-output ----+                          +--> deliveries -----> sink --> receiver
//	reply-to ----------+     one session's row    |                       |
//	delivery-receipts -+--> (state, event, now) --+--> delivery-receipts <-+   (of attempts; the final one is ours)
//	delivery-control --+     -> (state, effects)  +--> delivery-dlq
//	deadlines ---------+            |             +--> reply-to (a tombstone: the route is used)
//	                                | looks up
//	delivery-receipts ------> one route's row: its circuit, what is on its way
//
// All topics are named "{agent}-..." and keyed by session. Two groups: Graph's has the deliveries, keyed by session;
// RoutesGraph's has the routes, keyed by route, because a route's deliveries are spread over all partitions. The first
// looks into the table of the second, which is late by some milliseconds: that costs an attempt, never a delivery.
// Package sink makes the attempts; it owns no state.
//
// # What it promises
//
// A delivery is named by session, turn and route: an output that comes again is the same delivery. An attempt is one
// record on deliveries, emitted when it is due, and named by delivery and number; the receipt of any other attempt
// changes nothing. Exactly one final receipt a delivery, with the turntable.id "{delivery}/final/{round}"; an
// operator's requeue begins a new round. Outside Kafka an attempt is at-least-once, with the delivery's id as
// Idempotency-Key.
//
// # Waiting
//
// Nothing sleeps: retries, leases, open circuits, routes that have not come and what waits for an operator are
// deadlines of the row. So a receiver that is down delays no other delivery. A failed attempt is followed by another
// after a wait that is drawn, from the delivery's id, between zero and a bound that doubles from Service.Initial to
// Service.Longest, or after what the receiver asked for (Retry-After) where that is longer; until Service.Budget is
// spent. An attempt without a receipt is taken up again after the lease. What is deferred or lost spends no budget;
// while the circuit is open it is spent.
//
// # Routes and tokens
//
// With turn.WithDelivery an output names its route by a route_id, and the bearer token stays in the reply-to record,
// which this package reads for itself and keeps in its own row until the delivery is over; from there it goes into the
// records of attempts and nowhere else: not into receipts, dead letters or logs. An output whose route has not come
// waits for it, for a limited time. A reply descriptor names a service, never an address: see sink.Services.
//
// A route is kept until an output names it, for Rules.RouteTTL at most. An output drops the route it names even where it
// is not delivered to it, because the descriptor names no service. A session keeps 64 routes that are not named yet, and no
// more than its row has room for: a new route evicts the oldest. An output whose route was evicted waits Rules.RouteWait
// like any other whose route is missing, and ends in a final receipt, dead.
//
// # Sizes
//
// Everything in a row is bounded, by count and in bytes (Rules.RowLimit). What there is no room for is given up in this
// order: dead deliveries that wait for an operator, memories, the newest deliveries, which are dead at once.
package delivery
