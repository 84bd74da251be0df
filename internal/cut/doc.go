// Package cut owns what Goka's processors share with the broker, so that offsets, local store and outputs advance only
// together.
//
// A cut divides the inputs of all partitions of a member into a before and an after. It is made at a moment at which Goka
// has marked everything that was handed to it as done, so no record is half before it:
//
//	                       cut 1                         cut 2
//	partition 0  --- a --- b | - c ------ d ------------ e | --- f
//	partition 1  ----- k --- | --- l ---------- m -------- | - n ---
//	                         |                             |
//	                         nothing is in flight          nothing is in flight
//
// Everything about the records before a cut is made durable together: their outputs, the rows that they wrote, the offsets
// after them, and the local store. A process that dies between two cuts continues at the first: the offsets say so, and the
// local store on its disk is not ahead of it.
//
// One input from the broker until its offset is committed:
//
//	Sarama's claim
//	     |  claim.pump               waits at the gate: Series.Acquire counts the record as in flight
//	     v
//	Goka's partition processor       calls the callback in the partition's goroutine
//	     |  callbackContext.Emit     outputs are sent at once
//	     |  callbackContext.SetValue the row goes to the open layer of the local store and is queued for the changelog
//	     v
//	session.MarkOffset               Goka calls it when the outputs are acknowledged: Series.Release
//	     |                           other records may be in flight still; the record waits for the cut
//	     v
//	Series.cutLocked                 nothing is in flight and the cut is due, or the gate was shut for it
//	     |                           Table.Seal: queued rows are sent now; Layer.Seal: later rows belong to the next cut
//	     v
//	Series.close                     waits until the rows of the cut are acknowledged
//	     |
//	     v
//	Closer.Close                     commits the offsets (Plain), or the transaction with them (Transactional)
//	     |
//	     v
//	Layer.Flush                      writes the sealed layer to the disk; later cuts may be written with it
//
// Under at least once (Plain) the gate opens as soon as the cut is made, and the next cut fills while this one is closed.
// Under exactly once (Transactional) the gate stays shut until the transaction is committed, and the layer is sealed after
// that. Deadlines pass the gate like records, but have no offset to commit.
//
// A record whose handler failed is in flight until it is handled, but cuts do not wait for it: they end before it in its
// partition (Series.Pause).
//
// Group wraps a sarama.ConsumerGroup: it joins again after each generation, and hands Goka a session whose context ends
// after the drain, and claims whose records pass the gate. A generation has one Series. Producer replaces Goka's producer.
// Goka and Sarama are not modified.
package cut
