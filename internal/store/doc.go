// Package store is the local store of one partition of a table. It layers the writes of the running cut over the state of
// the last flushed cut, so that the disk never holds an effect whose outputs may not have reached Kafka:
//
//	Set, Delete, SetOffset ──> open layer     (memory: the running cut)
//	                Seal   ──> sealed layer   (memory: the cuts that are not flushed yet)
//	                Flush  ──> base           (LevelDB or memory: the last flushed cut and its changelog offset)
//
// Reads see the open layer over the sealed layer over the base. Iterators see the same, without the parts of rows. Flush
// writes one or more cuts to the base as one atomic batch, with the changelog offset of the last cut in the same batch.
//
// A DueIndex holds the deadlines of the rows. The timer claims of internal/cut pop what is due from it and hand it to Goka as
// records of a virtual topic, whose edge WithTimerEdge adds to the graph.
// Close discards what was not flushed; that is the rollback of an aborted cut. Committed rows that were discarded are
// read again from the changelog.
//
// Two kinds of writes are committed by definition and are not layered: those before MarkRecovered, which come from the
// changelog, and all writes of a store opened WithThrough (tables of joins and views). The store batches them and writes
// them by itself; reads see them at once.
//
// A store also keeps the time at which it was known to be at the end of its changelog (SetAsOf). On opening, the caller
// uses it to decide whether compaction may have removed tombstones that the store has not seen.
//
// LevelDB does not sync per flush. A process that is killed loses what was not flushed, and after a power loss the store may
// be at an earlier flush. The rest is read from the changelog.
package store
