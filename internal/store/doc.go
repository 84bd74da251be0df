// Package store is the local store of one partition of a table. It layers what a running cut writes over the state of
// the last cut that was flushed, so that the disk never holds an effect whose outputs may not have reached Kafka:
//
//	Set, Delete, SetOffset ──> open layer     (memory: the running cut)
//	                Seal   ──> sealed layer   (memory: the cuts that are to be written)
//	                Flush  ──> base           (LevelDB or memory: the last flushed cut and its changelog offset)
//
// Reads and iterators see open over sealed over base. The base changes by one atomic batch for one or more cuts, the
// changelog offset of the last in the same batch. Close forgets what was not sealed and flushed, which is the rollback of an aborted cut: the
// changelog brings back what was committed.
//
// Two kinds of writes are committed by definition and get no layer of their own: those before MarkRecovered, which come
// from the changelog, and all writes of a store opened WithThrough (tables of joins and views, hot standby). They are
// batched and written on their own; reads see them at once.
//
// A store also keeps the time at which it was known to be at the end of its changelog (SetAsOf). Whoever opens it judges
// by it whether compaction may have removed deletions that the store has not seen.
//
// LevelDB is not asked to sync per cut: a killed process loses nothing, a machine that loses power is set back to an
// earlier cut, and the changelog brings the rest.
package store
