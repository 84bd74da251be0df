// Package archive saves a stopped agent to files, restores it, and moves it to another number of partitions.
//
//	Backup        the topics of the agent  -->  a directory
//	Restore       a directory              -->  the topics of the agent, on the same cluster or another one
//	Repartition   the topics of the agent  -->  the same topics with n partitions
//	Undo          takes back a Restore or a Repartition that has not ended
//
// The topics of an agent are its inputs and outputs, the tables of its groups, and their loop and dead-letter topics: all of its
// catalog that exist (agent.Agent.Topics), those in Config.Specs, and the tables and loop topics of all groups that read them.
//
// # One moment
//
// A table, the offsets of its group and the topics belong to one moment. So all processes of the agent must be stopped: processors,
// doors, channel adapters, workers, sinks, and programs of others that write to its topics or read them in a group. A group with members
// is refused (ErrRunning), before and after the records were read. Records and offsets that are written meanwhile are noticed
// (ErrChanged); once topics are deleted, Repartition copies such records too, except those of the last moment before a deletion. Open
// transactions of processes that were killed are waited for.
//
// # Interruptions
//
// A call that was killed, or has failed, is made again with the same arguments and continues. Backup continues in its directory.
// Restore and Repartition keep a journal in the topic "{agent}-archive". As long as it exists, no group, worker or sink of the agent starts,
// and no topic of its catalog is created (topics.ErrArchive); delete neither the journal nor a topic. A second process takes over from
// the first, which then fails with ErrTaken. Topics are deleted by their IDs, so that a process that was paused meanwhile cannot delete
// those that its successor has made.
//
// # What is kept
//
// Keys, values, headers, timestamps and the order of the records of a key; the number of replicas and what is set for a topic itself;
// where each group continues, also share groups. A record whose ID is derived from where it was written, because its writer gave it
// none, gets the header turntable.first-at, so that it keeps this ID: it is the same message if the agent has handled it before.
//
// # What is not kept
//
//   - Offsets. Records get new ones. Offsets in rows and dead letters say where a record was before.
//   - Records of aborted transactions, and records that are deleted by age after their topic was filled, as they would have been before.
//   - Of share groups, what they have finished behind the first record that they have not: it is delivered once more, with the
//     header turntable.answers-from, so that workers look for an answer before they make a call. Consumer groups of workers do the same.
//     Their settings: workers set them when they start.
//   - ACLs, quotas, transactional IDs, and the defaults of the brokers.
//   - The local stores of instances (processors.LevelDB): delete their directories, they are read again from the tables.
//   - The way back to FlightDeck (migrate.Export) after a Repartition.
//
// # What the operator must see to
//
//   - Workers of other programs, and of builds without worker.Config.Archive, start meanwhile. Keep them stopped.
//   - Groups outside the catalog are found only if the principal may DESCRIBE them, or the cluster. If the tier of a
//     topic (remote.storage.enable) answers with nothing for half a minute, the topic seems to end there: look at Result.Records.
//   - If min.insync.replicas of the brokers is larger than Replication, the call waits for replicas without an end.
//   - A process that is paused for minutes while it sets offsets may set them again after its successor has ended. End it first.
//   - If a Repartition is left for longer than delete.retention.ms of a compacted topic while it copies, undo it and begin again.
//
// If several groups read a topic and are behind in different partitions, Repartition may let one read some records for the second time
// (Result.Repeated), as after a crash. Share groups come first, then groups without a table, so that no paid call is made again unless two
// share groups read one topic.
package archive
