// Package store is the local store of one partition of a table. It layers the writes of the running cut over the state of
// the last flushed cut, so that the disk never holds an effect whose outputs may not have reached Kafka:
//
//	Set, Delete, SetOffset ──> open layer     (memory: the running cut)
//	                Seal   ──> sealed layer   (memory: the cuts that are not flushed yet)
//	                Flush  ──> base           (LevelDB or memory: the last flushed cut and its changelog offset)
//
// Reads and iterators see the open layer over the sealed layer over the base. Flush writes one or more cuts to the base as
// one atomic batch, with the changelog offset of the last cut in the same batch. Close discards what was not flushed; that
// is the rollback of an aborted cut. Committed rows that were discarded are read again from the changelog.
//
// Two kinds of writes are committed by definition and are not layered: those before MarkRecovered, which come from the
// changelog, and all writes of a store opened WithThrough (tables of joins and views, hot standby). The store batches
// them and writes them by itself; reads see them at once.
//
// A store also keeps the time at which it was known to be at the end of its changelog (SetAsOf). On opening, the caller
// uses it to decide whether compaction may have removed tombstones that the store has not seen.
//
// LevelDB does not sync per cut. A killed process loses nothing. After a power loss the store is at an earlier cut, and
// the rest is read from the changelog.
package store
