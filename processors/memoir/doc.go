// Package memoir keeps a memory of each user across sessions. A session that ends becomes a snapshot, a worker merges it into the
// memory, and each later step for the model gets the memory.
//
//	memoir-lookups ---+   one user's row:        +--> enriched-message-input (with the memory, keyed by session)
//	memoir-sessions --+   the memory, the ended  |
//	memoir-dlq -------+-> sessions that are not  +--> memoir-context-session-end --> worker, or FlightDeck's updater
//	memoir-context ---+   in it yet              |                                      |
//	deadlines --------+                          +--> {group}-dlq                       |
//	      ^                                                                             |
//	      +------------------------------- memoir-context <-----------------------------+
//
// All topics are named "{agent}-..." and, except enriched-message-input, keyed by the memory key: the user ID, or the session ID
// for a session without a user (topics.MemoryKey). The turn writes memoir-lookups and memoir-sessions with turn.Config.Memoir.
// Package updater has the worker.
//
// # Guarantees
//
// A step is never lost because of a memory: it goes on without one if the row cannot be read. Its bytes stay as they are, except
// for the memory.
//
// The content of an ended session gets into the memory, or its snapshot is dead-lettered with the reason. A memory replaces the
// one before it only if it was made from exactly that one. Snapshots have the version of their memory in the header
// topics.HeaderMemoirVersion, and workers copy it. If the memory has changed meanwhile, the snapshot is sent again with the new
// one. Versions are digests: after a crash that repeats records, equal versions still are equal texts.
//
// Every ended session has a snapshot soon after its end, also if no worker runs: readers other than the workers rely on it. The
// first snapshot of a session waits a short time (Config.Patience) for the memory of another session of the user that is with a
// worker, which saves a pass. Then it is sent with the memory as it is. Further passes of a session, after an old version or a
// failure, wait until no pass with the current memory is open, so N sessions that end together cost about 2N calls of a model at
// most. Snapshots of different users do not wait for each other. The header topics.HeaderDeadline has the time at which a pass
// fails without an answer.
//
// A row keeps a bounded number of sessions for further passes (Config.PendingLimit). If one more session ends, its snapshot is sent
// like the others, and the oldest session that has been sent is given up: first those that wait for a further pass, then those
// that are with a worker. A given-up session is dead-lettered. If its memory comes later and is based on the current one, it
// still counts.
//
//	                        what can be repeated                     what cannot happen
//	step for the model      the record, with the same ID             a lost step
//	ended session           its snapshot: "{end}/snapshot/{pass}"    an end that is neither in the memory, waiting nor dead-lettered
//	memory                  the record; a repeat changes nothing     a memory that is based on another version than the one it replaces
//
// # What changes a memory
//
//	record of memoir-context                  effect
//	with a version, of a snapshot             replaces the memory, or the snapshot is sent again if the version is old
//	without a version (FlightDeck's updater)  the same, for the snapshot that was sent first of those that are with the updater;
//	                                          dead-lettered if that snapshot's session has been given up because of the limit
//	without a version, no snapshot is open    replaces the memory
//	with the version topics.MemoirEdit        replaces the memory; an open snapshot will be sent again
//	blank, except an edit                     the memory stays, and the session is done
//	longer than the limit                     dead-lettered; the pass has failed
//	tombstone                                 the user is forgotten: memory, waiting sessions and the parts of the row are deleted
//
// A record without a version that a person writes while a snapshot is with a worker is taken for the worker's answer. When the
// worker's own answer or failure arrives, the group knows better: the text stays as if it were an edit, and the snapshot is sent
// again. For this the group keeps the snapshot until the deadline of its pass. Answers and failures that come after that, or after
// Config.PendingLimit newer sessions, are dead-lettered. Set the header topics.HeaderMemoirVersion to topics.MemoirEdit to save the
// pass.
//
// # FlightDeck's updater
//
// The updater does not say which snapshot it answers. It must answer each at most once, in order and before its timeout, as it
// does unless it crashes between its answer and its commit. It may leave out some. Therefore a session that is answered while
// others are with the updater is done only when all of them have been answered. An answer that has all words of the current memory,
// while earlier passes were sent with fewer, is that of a pass with the current memory: the earlier ones are sent again, so one
// missing answer does not shift those after it. Otherwise, if an answer is missing, one of the passes fails after its timeout. It is
// not known which snapshot the updater has left out, so all of them are sent again. What is in the
// memory already is then merged into it once more. A user who always has a session with the updater can reach the limit of
// sessions before it is known; the oldest ones are then dead-lettered, although the memory may have them.
//
// Run the group with processors.ExactlyOnce for this updater. At least once, a crash can send a snapshot twice, and the second
// answer would be taken for that of another one. Package updater needs no such care.
//
// A memory that comes after its user was forgotten is ignored here, but it is the last record of its key in memoir-context, which
// is compacted. Stop the workers of a user, or write a second tombstone.
package memoir
