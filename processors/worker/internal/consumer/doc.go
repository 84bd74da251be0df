// Package consumer delivers the records of a worker from a consumer group (Sarama). It is for brokers without share groups.
//
// A partition has one owner, whose position in it is one offset. The package adds what a worker needs beyond that:
//
//   - Records of a partition are handled concurrently. One slow record delays neither the others nor their commits: what is
//     settled beyond the committed offset is stored in the commit's metadata (package progress).
//   - A call of the handler outlives the generation in which it began. A rebalance does not wait for it. If its partition
//     returns to this member, the call continues; if the partition moves, the call continues for the handover, and the new
//     owner defers its record. The deferral ends when the previous owner has noted in a commit of its own that the record
//     is settled, when it has left the group, or when the handover has passed. Only in the first case the record is not
//     delivered again; otherwise it is delivered as repeated.
//   - A call starts only if the group has answered the member within three quarters of the session timeout. A process that
//     was suspended for longer first asks the group, because its partitions may have moved.
//   - The member leaves the group only when Run ends. A failed, cancelled or slow handler never makes it leave.
//   - Commits follow within 50 ms of the record that was settled: a kill repeats at most the records of that time.
//
// A record is not lost, and a call is repeated only after a fault: a crash, a suspended process, a connection that is lost, or a
// handover that was too short. There is one exception: a member without a partition, or only with empty ones, has no commit for
// its notes, so that a call which it has handed over is repeated. The next delivery of its record is marked as repeated.
// TestSimulatedGroupsLoseNothingAndRepeatOnlyAfterFaults simulates groups with each of these faults.
//
// Rebalances are eager: all members stop reading for about half a second. Sarama has a cooperative protocol too, but a group
// cannot change to it in one rolling deployment, and with running calls unaffected there is little to gain. The sticky
// assignor moves as few partitions as possible.
package consumer
