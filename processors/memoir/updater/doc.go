// Package updater has the worker that updates the memories of users when their sessions end. It calls an Updater, which
// usually asks a model (package processors/memoir/model).
//
//	{agent}-memoir-context-session-end --> Worker --> Updater --> {agent}-memoir-context
//	                                         |
//	                                         +--> {agent}-memoir-dlq, if the updater failed
//
// Package memoir has the group that writes the snapshots of ended sessions and decides about the memories. A snapshot has the
// conversation and the memory of the user; the worker writes the whole new memory. The group decides which memory counts, and
// sends the snapshot again if another one changed the memory meanwhile. FlightDeck's processing can take the place of the
// group, because the records are the same.
//
// # Guarantees
//
// The worker writes one record for each snapshot: a memory, or the snapshot itself with the reason of the failure in its
// headers. No snapshot is dropped silently.
//
//   - A repeated snapshot gets the same record again: it is remembered for 24 h, 10,000 records and 64 MiB (Config.RememberFor). A
//     process remembers its own. If the group wrote a snapshot twice because it crashed, and another process reads the second
//     record, the updater is called a second time, and the group ignores the second memory.
//   - Before a worker handles a redelivered snapshot, it looks for the record on its topic. The updater is called again only
//     for a call that was interrupted. There is one exception, because memoir-context is compacted: if another memory of the
//     same user was written since, and the broker has compacted the topic, the record is no longer there. The updater is then
//     called again, and the group ignores the second memory. A topic that topics.Ensure creates is not compacted for 24 h
//     (min.compaction.lag.ms).
//   - A blank memory keeps the one that the snapshot has. A session without messages keeps it too, without a call.
//
// The context of a call ends at the deadline: that of the pass (the header turntable.deadline), or 30 minutes after the record.
// The ends of turns do not concern it. An updater that ignores its context counts toward Config.Concurrency until it returns.
//
// # Retries
//
// An error with a method RetryAfter() time.Duration, such as think.Unavailable, says that a later call may succeed: the worker
// calls again (Config.Retry), by default 5 times with growing waits and never after the deadline. Any other error, and a panic,
// goes to memoir-dlq, upon which the group sends the snapshot again after a wait.
//
// # Cost
//
// What a call used is logged and passed to Config.Metrics. It counts neither for a session, which has ended, nor for a budget: no
// topic has it.
package updater
