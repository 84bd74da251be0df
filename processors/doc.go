// Package processors runs Goka group graphs under a runtime that loses, repeats and stalls no record.
//
// A capability is a graph. Input binds a typed topic to a Handler, Edges makes Goka's edges of all inputs of a group,
// with its loop topic and its dead-letter topic:
//
//	record -> poison?            -> {group}-dlq
//	       -> no session id?     -> {group}-dlq
//	       -> not under its key? -> {group}-loop -> the same handler, once, with the record's own coordinates
//	       -> handler            -> effects: outputs first, then the table row
//	          panic              -> {group}-dlq, no effects
//	          error              -> no effects; the unit restarts and the record comes again
//
// New and Run add the runtime: offsets, table and outputs that advance together, timers, supervision, health.
//
// The same graph runs under a plain goka.NewProcessor and under goka/tester, without the runtime's guarantees and
// without timers. Give that processor goka.WithNilHandling(goka.NilDecode), or it drops tombstones unseen, and
// goka.WithHasher(codec.KeyHasher()), or it partitions differently from every Java client.
package processors
