// Package sink makes the attempts that package delivery requests: it consumes deliveries, makes one attempt for each, and
// writes a receipt. It decides nothing and stores nothing, so any number of sinks can share the work.
//
//	{agent}-deliveries --> Sink --> Transport --> receiver
//	                        |
//	                        +--> {agent}-delivery-receipts
//
// # Consuming
//
// A sink runs on package worker and is not a Goka processor, because an attempt waits for its receiver and a Goka callback
// must not wait. Attempts run concurrently and end in any order. A record is settled when its receipt is acknowledged. A
// receiver that does not answer blocks only its own attempt. After a crash, the attempts that were running are made again.
// The delivery group waits for a receipt for the time of a lease (delivery.Config.Lease). A record whose lease has ended is
// skipped, because the delivery group has already retried it.
//
// # Limits
//
// Config.Concurrency limits the attempts of a sink and Config.RouteLimit those of one route. A record that exceeds either gets a
// deferred receipt immediately: no attempt is made, and the delivery group requests it again later. A route gets at most
// half of the attempts of Config.Concurrency that other routes do not use. With the defaults, it takes more than twelve routes
// whose receivers do not answer to use up all attempts.
//
// # What a receiver sees
//
// An attempt is at-least-once. A receiver can get the same attempt twice in two cases: the sink died after the receiver
// accepted the delivery and before the receipt was written, or the delivery group died after it requested the attempt and
// before its own row was written. Every attempt of a delivery has the same Idempotency-Key, so the receiver can deduplicate.
//
// # Responses
//
// A Transport that implements Exchanger returns what the receiver responded, which the receipt carries for a success and a
// failure. It is told when a record may have been handled before, so that it can refuse to repeat what must not be repeated.
// The attempts of package peer use it: see Config.Peers.
package sink
