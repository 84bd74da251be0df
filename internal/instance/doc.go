// Package instance runs one instance of a group: Goka's processor on this project's cut, producer, stores and topic
// manager. A failure stops the instance as a whole, and it restarts as a whole:
//
//	Instance.Run --> supervise --> runOnce --> connect --> prepare --> goka.NewProcessor --> serve --> stopped
//	                     ^                                   |           on run.builders      |
//	                     |                                   |                               |
//	                     +------------ backoff <-- failure <-+-------------------------------+
//
// A run creates its client, stores, producer and group again. What outlasts it is in Instance: the health, the last
// membership, and the inputs as they were. While a run serves, it fails if recovery makes no progress because its end has
// moved (watchRecovery), an input was recreated or has gained partitions (watchInputs), or a lookup table was behind its
// topic for longer than the topic keeps tombstones (checkAges). Errors that only an operator can resolve end Run instead.
//
// Before a run reads a group's topics, TopicManager creates the table and loop topics, and tells Goka at which offset the
// recovery of a table ends: after the last committed record, which StableEnd finds. Fencer aborts the transactions that dead
// members have left open there. Divergence finds where to continue after an unclean leader election has truncated a log.
package instance
