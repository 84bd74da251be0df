// Package recovery answers what a group must know of its topics before it reads them. TopicManager creates the table and
// loop topics, and tells Goka at which offset the recovery of a table ends: after the last committed record, which StableEnd
// finds. Fencer aborts the transactions that dead members have left open there. Divergence finds where to continue after an
// unclean leader election has truncated a log.
package recovery
