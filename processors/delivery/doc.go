// Package delivery sends an agent's outputs to the callers that asked for them: every output with a reply route becomes a
// delivery, and every delivery ends in one final receipt: delivered, suppressed (there was nothing to send) or dead with the
// reason.
//
//	message-output ----+                          +--> deliveries -----> sink --> receiver
//	reply-to ----------+     one session's row    |                       |
//	delivery-receipts -+--> (state, event, now) --+--> delivery-receipts <-+   (of attempts; Graph writes the final one)
//	delivery-control --+     -> (state, effects)  +--> delivery-dlq
//	deadlines ---------+            |             +--> reply-to (a tombstone: the route is used)
//	                                | looks up
//	delivery-receipts ------> one route's row: its circuit breaker and its attempts in flight
//
// All topics are named "{agent}-..." and keyed by session. There are two groups. Graph has the deliveries, keyed by
// session. RoutesGraph has the routes, keyed by route, because the deliveries of a route are spread over all partitions.
// Graph looks up the table of RoutesGraph, which may be stale by some milliseconds. A stale row can cause an unnecessary
// attempt, but loses no delivery. Package sink makes the attempts; it owns no state.
// With Config.Channels, outputs with an origin are deliveries to its channel, and channel-messages is an input.
// With Config.PeerCallbacks, Graph also reads peer-callbacks, the replies of tasks that package peer runs for other instances.
//
// # Guarantees
//
// A delivery is identified by session, turn and route: a repeated output is the same delivery. An attempt is one record on
// deliveries, written when it is due, and identified by delivery and number; a receipt for any other attempt changes
// nothing. A delivery has exactly one final receipt, with the turntable.id "{delivery}/final/{round}"; an operator's
// requeue begins a new round, with a final receipt of its own. Outside Kafka an attempt is at-least-once, with the
// delivery's ID as Idempotency-Key.
//
//	                    what can be repeated                          what cannot happen
//	delivery            an attempt, with the same Idempotency-Key     no final receipt, or two of them
//	final receipt       the record, with the same ID                  a different outcome without an operator's Requeue
//	receiver is down    its own attempts, until the budget is spent   a delay of others, within the limits of package sink
//	sink crashes        its open attempts, after the lease            a lost delivery
//	bearer token        -                                             a token in a frame, log, receipt or dead letter
//
// # Retries
//
// No goroutine sleeps. Retries, leases, open circuits, missing routes and dead deliveries are deadlines of the row, so a
// receiver that is down delays no other delivery.
//
// After a failed attempt the next one waits for a pseudo-random time, derived from the delivery's ID, between zero and a
// bound. The bound is Service.Initial at first and doubles with each attempt up to Service.Longest. If the receiver's
// Retry-After is longer, the attempt waits for that time. Attempts end when Service.Budget is spent. A lease is the time
// that an attempt may take until its receipt (Config.Lease); an attempt without a receipt (a lost attempt) is retried after
// it. The time of lost attempts, and of attempts that a sink deferred because it had too many in flight, does not count
// against the budget. The time during which the circuit is open counts.
//
// # Routes and tokens
//
// With turn.Config.Delivery an output names its route by a route_id. The bearer token stays in the reply-to record, which this
// package reads itself and keeps in its own row until the delivery ends. The token is written to the records of attempts
// only, never to receipts, dead letters or logs. An output whose route has not arrived waits for it (Config.RouteWait: 30 s). A
// reply descriptor names a service, never an address; see sink.Services.
//
// A route is kept until an output names it, for 24 h at most (Config.RouteTTL). An output drops the route that it names even if
// it is not delivered there because the descriptor names no service. A session keeps up to 64 unnamed routes, or fewer if
// its row has no room; a new route evicts the oldest. An output whose route was evicted waits as for any missing route, and
// its delivery ends dead.
//
// An output whose descriptor has the bearer token itself needs no record on reply-to: FlightDeck's processing writes such
// outputs. It uses up the first stored route with that token and all older ones, so that the tombstone after its delivery
// is written. Without the tombstone, FlightDeck's processing sends later outputs of the session to the same receiver. If the
// output is read before the record of its route, that record is not stored when it is read.
//
// # Channels
//
// With Config.Channels an output whose reply descriptor has an origin (topics.OriginRoute) is delivered to that place on its
// channel, by the transport of the kind topics.KindChannel. The attempts carry the origin, so no one looks up where a session
// was last seen, and a requeue goes to the same place. The deliveries of a session to an account are attempted in order. A
// record of channel-messages is a delivery of its own: its identity is its whole turntable.id, not its turn.
//
// A message may be sent in several chunks. A failed attempt reports what was sent in the Response of its receipt; the next
// attempt gets it as Progress and continues there. The final receipt has the Response of the last attempt. A Response of more
// than MaxProgress bytes is not kept. An origin that is invalid is dead-lettered. A descriptor with a callbackService never goes
// to a channel, whatever else its writer put into it, and the output of a delegated task is not delivered at all.
//
// # Agents that call agents
//
// An agent calls another as an asynchronous tool: a dispatcher turns the tool-use record into a chat request to the other
// agent, with a reply route that names the caller's callback door. The called agent is an ordinary agent. No goroutine
// waits for its answer.
//
//	user --> caller: message-input, model asks for delegate_task
//	         caller --> dispatcher: tool-use
//	                    dispatcher --> called agent: POST /api/chat {session--call, task, reply {service, token}}
//	                    (the call is pending; nothing waits)
//	                                   called agent: turn, message-output, delivery, sink
//	         caller <------------------ sink: POST /api/tools/response {"result": answer}, Bearer token, Idempotency-Key
//	         caller: tool-use-result, model answers --> user: message-output
//
//	what happens                             what the caller's model receives
//	the called agent answers                 {"result":answer}
//	its turn ends in an error                an error result with error.code and error.message
//	it never answers, or its callback dies   an error result, reason timeout, at the tool deadline
//	the task cannot be handed over           an error result immediately
//	a callback arrives twice, or late        nothing: the sender gets 202, the record is dead-lettered
//
// examples/multiagent runs all of this in separate processes.
//
// # Sizes
//
// Every field of a row is bounded by count and in bytes (Config.RowLimit). If there is no room, state is given up in this
// order: dead deliveries that wait for an operator, memories of finished deliveries, the progress of deliveries to channels
// (what was sent is then sent again), then the newest deliveries, which end dead immediately.
package delivery
