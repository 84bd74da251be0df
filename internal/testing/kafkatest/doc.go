// Package kafkatest starts a real Apache Kafka for tests: KRaft, one node or three, each a process of its own on the
// loopback interface, from the released jars. It needs Java 17 or newer and, the first time, Maven and its registry.
//
// [Start] starts a cluster whose nodes a test can kill, stop, pause and restart, and whose leaders it can move; [New]
// ties one to a test. [Shared] is for tests that only want a broker: one node for the whole test binary, or the cluster
// that KAFKA_BOOTSTRAP_SERVERS names. Where a broker cannot be had, tests fail and say why; they are never skipped.
//
// pom.xml is the one place that pins the version. Maven copies the jars once into the user's cache directory; from then
// on nothing here needs Maven or a network.
//
// # Build tag
//
// Tests that start a broker stand behind the build tag kafka, so that go test ./... needs no Java and stays fast; make
// test-kafka runs them. Those that any broker will do for take it from internal/testing/testbroker, which goes by the tag:
//
//	go test -race -tags kafka ./processors/turn/integration
//
// # What ends a broker
//
// A cluster ends with [Cluster.Close], [New]'s with its test, and the shared one with [Main]. Should the test binary
// die without that, Linux kills its brokers; elsewhere they are left behind. Directories that nobody uses any more
// are removed by a later start. Only what [Detach] started (make kafka) outlives its starter, until [EndDetached].
//
// # How it differs from a production Kafka
//
// Topics are not created by use. Nothing waits for more members when a group forms, and a group's session timeout may
// be one second. A dead broker of three is noticed within three seconds, and leaders move only when they must. The
// internal topics have five partitions. The heap is 512 MB.
package kafkatest
