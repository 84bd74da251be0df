// Package worker runs a handler for the records of some topics. It is the runtime of model workers, tool workers and the
// delivery sink, and of a program's own workers. Use it for work that takes long, costs money, or has effects outside
// Kafka; in a group graph, such work would block a partition.
//
//	             share group: a lock per record           +- slot: handler -- nil: settled ------------+
//	topics ----> consumer group: partitions, offsets ---> +- slot: handler -- error: retry, then DLQ --+--> broker
//	             (Mode)                                   +- slot: handler -- stop, lost: released ----+
//
// A slot is one of the Config.Concurrency places in which a record is held and its handler is called. A call is one call of the
// handler. A released record is delivered again, to this worker or another.
//
// A record is settled when its handler returns nil, or when its dead letter is written; then it is not delivered again.
// Until then it is delivered at least once: a crash between an effect and the acknowledgement repeats the handler, with
// Record.Repeated set. A handler whose calls cost money should then look for its published result, and repeat an
// interrupted call with the same idempotency key.
//
// A handler that fails, panics or hangs affects its own record only. The worker retries it in its slot by the RetryPolicy,
// then passes it to Config.DeadLetter. The worker never leaves its group because of a handler.
//
//	                                  share group                          consumer group
//	brokers                           Kafka 4.2 or newer                   Kafka 3.6 or newer
//	busy workers per partition        any number                           one
//	a worker joins or leaves          no call is interrupted, none waits   partitions pause for the rebalance; running calls
//	                                                                       continue for Config.Handover
//	a worker stops                    running calls continue for Config.Grace; only those that are then interrupted are made again
//	a worker is killed                its running calls are made again     the same, after the session timeout (10 s)
//	                                  within a second
//	a worker hangs (SIGSTOP)          its running calls are made again     the same, after the session timeout
//	                                  after Config.Lock
//	order per key                     no                                   Config.Ordered
//	deliveries of a record            the broker's limit, 5 by default;    unlimited
//	                                  on the last delivery the worker
//	                                  writes the dead letter and does not
//	                                  call the handler
//	a slow record                     delays nothing                       holds back the committed offset; Config.ReadAhead bounds
//	                                                                       how far others run ahead
//
// # Limits
//
// A Limit bounds the calls with the same key: how many run at a time, and how many begin, or how many units such as tokens
// they take, in a minute. A worker can have several; a call begins when all of them admit it.
//
//	worker.Config{Limits: []worker.Limit[worker.Record]{
//		{Name: "tenant", Key: tenant, Concurrency: 4},
//		{Name: "service", PerMinute: 600},
//	}}
//
// A record that waits occupies no slot, takes nothing from other limits and keeps its lock or its partition's window, so
// records with other keys are handled meanwhile. The records with one Kafka key are a session, and sessions take turns:
// however many records of a session wait, at most two of its calls begin before the next call of another session. In a
// share group, a worker can choose only among the records that it has acquired. While one session occupies more than half
// of its slots, it acquires further records, to find those of other sessions (Config.Waiting).
//
// The broker of a share group counts a delivery for a record that waits when its worker stops. Raise
// share.delivery.count.limit of the group if records can wait through several deployments.
//
// A handler that must decode a record to know its limits calls Enter itself. Limiter.Pause stops the calls of a key from
// beginning for a time, for example after a Retry-After. Limits count the calls of a process; processes do not share them.
//
// # Health
//
// Worker.Health lists the records that the worker holds, with their age and whether they wait, and the handlers that ignore
// the end of their context. Its Lag is the number of records that are not settled: of this worker's partitions in a
// consumer group, of all partitions in a share group. The worker reads a share group's lag from the brokers every 10 s and
// needs the permission to describe the group. Ready means that the worker is a member of its group and takes records.
//
// # Share groups
//
// A share group has at most 200 members by default (group.share.max.size). A process is one member, whatever its concurrency,
// with one fetch connection per broker. If a process is killed while it writes the dead letter of a last delivery, the record
// is lost. If your processes are killed often, raise share.delivery.count.limit of the group.
//
// A share group needs configuration: the worker sets share.auto.offset.reset, share.isolation.level and
// share.record.lock.duration.ms of its group at each start. Without the permission (AlterConfigs on the group) it logs the
// command that an operator runs once.
//
// With Auto, a group with committed offsets stays a consumer group, because a share group would not continue from them. To
// move it: stop all workers, choose a new group name, and set the share group's start offsets with kafka-share-groups.sh
// --reset-offsets before the first worker starts.
package worker
