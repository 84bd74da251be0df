// Package cut owns what Goka's processors share with the broker, so that offsets, local store and outputs advance only
// together.
//
// A cut is a moment when everything that was handed to Goka has been marked done. A Series counts what is in flight,
// decides when a cut is made, and lets a Closer end it:
//
//	claims, timers, visits --> gate --> Goka --> marks --> nothing in flight --> the cut
//	                                                                              |
//	                          offsets: Closer.Close   local store: Layer.Seal, Layer.Flush
//
// Group wraps a sarama.ConsumerGroup: it loops over generations by itself, hands Goka a session whose context ends after
// the drain, and claims whose records pass the gate. Producer wraps Goka's producer: it puts a table row behind the
// outputs of its callback. Goka and Sarama are used as they are.
package cut
