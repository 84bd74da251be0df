// Package sink makes the attempts that processors/delivery asks for: it takes deliveries off Kafka, makes one attempt
// of each, and writes a receipt. It decides nothing and keeps nothing; any number of sinks share the work.
//
//	{agent}-deliveries --> Sink --> Transport --> the receiver
//	                        |
//	                        +--> {agent}-delivery-receipts
//
// # How it reads
//
// A sink is a member of a plain consumer group (processors.Consume), and not a Goka processor: an attempt takes as long
// as its receiver, and a callback of Goka's must not wait. Attempts run side by side and end in any order; an offset is
// committed when the receipts of all records up to it are acknowledged. A receiver that does not answer holds its own
// attempt and nothing else: reading goes on up to Window records ahead of it. What a crash repeats is what was not
// committed. An attempt whose lease has ended is passed over: the delivery group has made another.
//
// # Bounds
//
// WithConcurrency bounds the attempts of a sink, WithRouteLimit those of one route. What exceeds either goes back at
// once as deferred. A route gets no more than half of what is free, however many receivers are dead: one that is well
// always finds a place.
//
// # What a receiver sees
//
// An attempt is at-least-once: a sink that dies after the receiver took a delivery, and before its receipt was written,
// has it made again. So does a delivery group that dies after it asked for an attempt, and before its own row was
// written: the sink makes a repeated attempt again and writes its receipt again. Every attempt of a delivery has the same
// Idempotency-Key.
package sink
