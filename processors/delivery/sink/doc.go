// Package sink makes the attempts that package delivery requests: it consumes deliveries, makes one attempt for each, and
// writes a receipt. It decides nothing and stores nothing, so any number of sinks can share the work.
//
//	{agent}-deliveries --> Sink --> Transport --> receiver
//	                        |
//	                        +--> {agent}-delivery-receipts
//
// # Consuming
//
// A sink is a member of a consumer group (processors.Consume) and not a Goka processor, because an attempt takes as long
// as its receiver does and a Goka callback must not wait. Attempts run concurrently and end in any order. An offset is
// committed when the receipts of all records up to it are acknowledged. A receiver that does not answer blocks only its own
// attempt: the sink reads on, up to WithWindow records ahead. After a crash, the records after the committed offset are
// attempted again. A record whose lease has ended is skipped, because the delivery group has already retried it.
//
// # Limits
//
// WithConcurrency limits the attempts of a sink and WithRouteLimit those of one route. A record that exceeds either gets a
// deferred receipt immediately. A route gets at most half of the slots that other routes leave, so that a healthy receiver
// always finds one, however many others do not answer.
//
// # What a receiver sees
//
// An attempt is at-least-once. A receiver can get the same attempt twice in two cases: the sink died after the receiver
// accepted the delivery and before the receipt was written, or the delivery group died after it requested the attempt and
// before its own row was written. Every attempt of a delivery has the same Idempotency-Key, so the receiver can deduplicate.
package sink
