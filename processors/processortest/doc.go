// Package processortest runs topologies in a test without a broker. The test writes input records, reads output records
// and advances the clock.
//
// New starts the given graphs on github.com/lovoo/goka/tester. In writes and Out reads typed records of a topic, InRaw and
// OutRaw do the same with bytes. Table reads and seeds the rows of a group table. Advance moves the clock and fires the
// deadlines that become due. Replay delivers every record again, as after a crash, and reports what changed. Snapshot and
// Restore lose the last changes of tables, as a crash does; Crash also delivers the records since the snapshot again.
// HoldOutputs lets the test choose the order in which graphs read the records of each other. Golden compares the outputs with a
// file. Outputs that the test did not read fail the test when it ends, so every test detects an unexpected record, such as a dead
// letter.
//
// # Agents
//
// Package agenttest (processors/agent/agenttest) tests an agent of package agent in ten lines. It plays the model, the user and
// the people who approve, and runs the agent's own tools, on a driver of this package. Package gates (processortest/gates)
// answers the gates of a topology. Both are packages of their own, so that other tests do not link what they need.
//
// # Determinism
//
// Records are processed one at a time: Input.Pipe returns when every graph is idle. Pending records are processed in the
// order in which they were written, whatever their topics. If several graphs read a topic, they get a record in the order
// of the arguments of New. Joined and looked-up tables are up to date before each record. The time is set only by New and
// Advance. A test therefore has the same outputs in the same order each time.
//
// A graph whose callback fails or panics stops, and the test fails with its error. (In production, a
// failed handler is called again; see processors.Handler.)
//
// # Differences from a real broker
//
// There is one partition: every key is owned, no record is in a wrong partition, co-partitioning is not checked, and
// nothing runs in parallel. Records of different topics are processed in the order in which they were written, which is
// only one of the orders that are possible on a broker.
//
// The broker accepts everything: emits are acknowledged before they return, no record is too large, no topic is
// missing, no acknowledgement is lost, and nothing is fenced. There are no rebalances, no recovery from the changelog,
// no offset resets, no commits, no cuts, no restarts and no lag. Retention and compaction delete nothing.
//
// Tables are in memory and keyed by topic: a graph that joins or looks up the table of another graph of the same driver
// reads that graph's storage directly, so it never reads stale rows. Deadlines fire exactly when they are due, not up to
// a tick later. The harness does not have what the runtime adds to Goka (the order of changelog and outputs, drains,
// supervision, health); test that on the embedded broker.
package processortest
