// Package processortest runs topologies in a test, without a broker: pipe records in, read records out, move the
// clock.
//
// New starts every graph it is given over github.com/lovoo/goka/tester. In and Out are typed ends of topics, InRaw and
// OutRaw the same in bytes, Table reads and seeds the rows of a group table. Advance moves the clock and fires the
// timers that come due; Replay delivers every record once more, as a crash does, and says what changed; Golden
// compares what came out with a file. Outputs that nobody read fail the test when it ends, so a record that should not
// have been written, a dead letter above all, is noticed by every test.
//
// # What is the same each time
//
// One record is processed at a time, to its end: Pipe returns once every graph is idle. Among records that wait, the
// one that was written first comes first, whatever its topic; where several graphs read a topic, they get a record in
// the order in which New was given the graphs. Joined and looked-up tables have caught up before each record. The time
// is what New and Advance say. So the same test gives the same outputs in the same order.
//
// A graph whose callback fails or panics stops; the test then fails with its error. (Under the runtime of package
// processors the unit would restart, and meet the same record again.)
//
// # What only a real broker can show
//
// There is one partition: every key is owned, nothing is misrouted by a foreign partitioner, co-partitioning is not
// checked, and nothing runs in parallel. Records of different topics come in the order in which they were written,
// which is one of the many orders a broker may choose.
//
// The broker accepts everything: emits are acknowledged before they return, no record is too large, no topic is
// missing, no acknowledgement is lost, and nothing is fenced. There are no rebalances, no recovery from the changelog,
// no offset resets, no commits, no cuts, no restarts and no lag. Retention and compaction delete nothing.
//
// Storage is memory, keyed by topic alone: a graph that joins or looks up the table of another graph in the same
// driver reads that graph's storage itself, so it never sees it late. Timers fire at their due time exactly, not
// within a tick of it. What the runtime adds around Goka (order of changelog and outputs, drains, supervision, health)
// is not here; test it on the embedded broker.
package processortest
