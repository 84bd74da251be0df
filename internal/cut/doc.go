// Package cut owns what Goka's processors share with the broker, so that offsets, local store and outputs advance only
// together.
//
// A cut is a moment at which Goka has marked everything that was handed to it as done. A Series counts what is in flight,
// decides when a cut is made, and lets a Closer close it, that is, make its offsets durable:
//
//	claims, timers, visits --> gate --> Goka --> marks --> nothing in flight --> the cut
//	                                                                              |
//	                          offsets: Closer.Close   local store: Layer.Seal, Layer.Flush
//
// Group wraps a sarama.ConsumerGroup: it loops over generations by itself, and hands Goka a session whose context ends
// after the drain, and claims whose records pass the gate. Producer replaces Goka's producer: it sends a table row after
// the outputs of its callback. Goka and Sarama are not modified.
package cut
