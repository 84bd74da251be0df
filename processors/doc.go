// Package processors runs Goka group graphs under a runtime that loses no record and does not stop on poison records
// (records that cannot be decoded).
//
// A capability, such as package turn, is a graph. Its table has one row per session; the session ID is the key of the row
// and of the records. Input binds a typed topic to a Handler; Edges builds the Goka edges of all inputs of a group, with its
// loop topic and its dead-letter topic:
//
//	record -> cannot be decoded?      -> {group}-dlq
//	       -> has no session ID?      -> {group}-dlq
//	       -> is under another key    -> {group}-loop, under its session ID -> handler, with the topic, partition and offset
//	          or in a wrong partition,                                         at which the record was first written
//	          or of a topic that is
//	          Repartitioned?
//	       -> handler                 -> effects: outputs first, then the table row
//	          panics                  -> {group}-dlq, no effects
//	          returns an error        -> no effects; it is called again, and after 10 attempts: {group}-dlq
//
// The inputs and the table of a group have the same number of partitions, except inputs with the option Repartitioned.
//
// A callback is one run of a handler, for a record or for a deadline. The coordinates of a record are its topic, partition
// and offset. A row can have parts: large values that are stored separately and written less often (Context.HasParts).
//
// New and Run add the runtime: offsets, table and outputs that advance together, deadlines, supervision and health.
//
// The same graph runs under a plain goka.NewProcessor and under goka/tester, without the guarantees of the runtime and
// without deadlines. Pass goka.WithNilHandling(goka.NilDecode) to that processor, otherwise it drops tombstones, and
// goka.WithHasher(codec.KeyHasher()), otherwise it partitions differently from every Java client.
//
// # The cut
//
// Offsets, the local store and outputs advance only at a cut: a moment at which every record and deadline that was handed
// to Goka is marked done. If there is no such moment for a time, the gate closes: no more is handed to Goka until the
// records in flight are done, which takes a few milliseconds (a drain).
//
//	          records, deadlines                     everything is marked done
//	                 |                                          |
//	gate  -----------v------------------------------------------x------------ the next cut
//	                 |    Goka: callbacks, rows, outputs        |
//	                 '------------------------------------------'
//	at least once    outputs acknowledged, then the row's       offsets are committed and the local store is written
//	                 changelog record                           in the background; the gate stays open
//	exactly once     outputs and rows in one transaction        offsets join the transaction, commit, then the local
//	                                                            store; the gate is closed until the commit is known
//
// # Guarantees
//
// AtLeastOnce is the default. Every output has an ID that is derived from what caused it, in the header turntable.id. A
// crash repeats the last records with the same IDs, so readers can deduplicate. A row is written after its outputs are
// acknowledged: a row that is found after a crash proves that its outputs are in Kafka.
//
// With ExactlyOnce, the outputs, rows and offsets of a cut are one Kafka transaction, and the brokers fence an instance
// that lost its partitions. Readers of committed records see no repeats. Readers of uncommitted records (the default of
// Java consumers) still see them: set isolation.level=read_committed.
//
//	                   at least once                             exactly once
//	repeats            seen by every reader, with the same IDs   seen only by readers of uncommitted records
//	stalled instance   stops sending when its lease is over;     fenced by the brokers
//	                   a request on the wire may still land
//	latency            one produce request per hop               two or three more requests per hop
//	brokers            Kafka 3.6 or newer; tested with 4.3, 4.1  the same; brokers that cannot fence are rejected at start
//	ACLs               read, write and the group                 also Write and Describe on the transactional IDs
//	                                                             {group}/*, and Describe on the cluster to abort a dead
//	                                                             owner's transaction (otherwise it waits for its timeout)
//	identity           optional; for quick restarts              required (WithInstance), unique in the group
//	choose it if       readers deduplicate by ID                 answers are counted or paid for
//
// Topology.ACLs lists them all for a graph (Describe), and Agent.Describe for an agent.
//
// A hop is the processing of one record by one group, from the input to its outputs.
//
// An instance that was cut off from its brokers, stopped, or suspended with its machine stops sending before its group
// session can have expired: it sends only under a lease, which the brokers' answers to its heartbeats renew. At least once,
// a request that was already on the wire may still land after another instance has taken over, because Kafka cannot fence a
// producer without transactions. A late output is a repeat with the same ID. A late table row is a rollback: it replaces
// the newer row of its key in the changelog until the key's next row, and an instance that recovers the table meanwhile
// continues from the older state although the inputs of the newer one are committed. Exactly-once excludes this. An
// instance that stops or fails in the ordinary way waits for the answers to its requests before it leaves the group.
//
// Transactions that a dead owner left open are aborted by the next owner of its partitions, whether they block the table or
// the group's offsets. There is no hot standby: an instance stores only the table partitions that it owns. All readers in
// this module read committed records under both guarantees, because other writers may be transactional.
//
// Effects outside Kafka (an HTTP request, a model call) are at-least-once under both guarantees. Pass the ID to the
// receiver.
//
// # Where an input starts
//
// An input without a committed offset starts at:
//
//   - the oldest record, or where WithPredecessor stopped, in a new group;
//   - the oldest record, if the group has read the input before: its topic was deleted and recreated, or the offset was
//     deleted;
//   - the newest record, if the group has offsets but has never read the input: an upgrade added the topic, or the group
//     was taken over from FlightDeck.
//
// Each committed offset lists the group's inputs in its metadata for this, in about 8 bytes per input. A tool that commits
// for the group removes the list until the next start. To skip records, reset offsets to the newest instead of deleting
// them.
//
// After an unclean leader election a group continues where the new leader's log began. Records that only the old leader had
// are lost. If the new log has grown beyond the committed offset before the group notices, the records between are skipped.
//
// # Failures
//
// A handler that returns an error is called again with the same record, after a wait that doubles (WithRestartBackoff).
// Meanwhile the records and deadlines behind it in its partition wait; the other partitions are handled and committed. After
// WithHandlerAttempts the record is dead-lettered. The number of attempts is stored with the committed offset of the record,
// so rebalances, deployments and restarts do not reset it; a crash loses the attempts since the last cut, and is not counted
// as one. A handler that ends the process (os.Exit, out of memory) is therefore called again without limit. Attempts at a
// deadline are counted in the process only. Metrics.Retry, a log line and Health.Err report each failed attempt; Health stays
// Running, and Health.Lag shows the partition that waits.
//
// A handler's error that wraps ErrKeepRecord never dead-letters the record: it restarts the processor, after a cut that ends
// before the record. The capabilities return such an error for a row that a newer build wrote.
//
// Any other failure stops the processor, which restarts with backoff. Requests that the brokers deny for a missing ACL are
// failures; after 20 consecutive ones Run returns ErrGaveUp. Health is degraded while the processor waits for a restart,
// while its membership is not confirmed, and while offsets cannot be committed for several cuts. Adding partitions to a
// topic in use ends Run with an error that names the topics and the ways to migrate.
//
// # Configuration
//
// Every option has a default that is safe for production, except where a capability's documentation says otherwise.
//
//	option                           default                  meaning
//	WithTopics                       off                      create missing topics, reject partition counts that differ
//	WithTopicSpecs                   none                     topics of an own graph, created like those of WithTopics
//	WithPartitions                   12                       of topics that are created, if no topic of the catalog exists
//	WithReplication                  the broker's             of topics that are created
//	WithStorage                      Memory()                 LevelDB(dir): a start reads only what was written after the last flush
//	WithGuarantee                    AtLeastOnce              ExactlyOnce requires WithInstance
//	WithInstance                     dynamic member           static membership; unique in the group
//	WithKeepMembership               leaves on stop           keep the partitions assigned for a quick restart
//	WithPredecessor                  none                     group whose committed offsets a new group starts at
//	WithTLS, WithSASL                plaintext                connections to brokers
//	WithProperties                   none                     Kafka client properties by their usual names
//	WithTick                         250 ms                   a deadline fires within one tick, once the records of before it are read
//	WithCommitInterval               100 ms; exactly once 0   least time between commits
//	WithMaxRecordBytes               1 MiB                    largest record that is sent
//	WithDeadLetters                  {group}-dlq              dead-letter topic
//	WithLogger, WithMetrics          none                     zap logger; callbacks
//	WithHandlerAttempts              10                       attempts before the record of a failing handler is dead-lettered
//	WithRestartBackoff               100 ms to 15 s           wait before a restart, or before a handler is called again
//	WithRestartLimit                 20                       consecutive failed restarts before Run returns ErrGaveUp
//	WithClock                        the system's             clock of deadlines and of Context.Now
//
// FromEnviron reads the same settings from environment variables. The options of each capability are in the
// documentation of its package.
package processors
