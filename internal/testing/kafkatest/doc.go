// Package kafkatest starts a real Apache Kafka for tests: KRaft, one node or three, each a process of its own on the
// loopback interface, from the released jars. It needs Java 17 or newer and, the first time, Maven and its registry.
//
// [Start] starts a cluster whose nodes a test can kill, stop, pause and restart, and whose leaders it can move; [New]
// ties one to a test. [Shared] is for tests that only want a broker: one node for the whole test binary, or the cluster
// that KAFKA_BOOTSTRAP_SERVERS names. Without a broker, tests fail with the reason; they are never skipped.
//
// pom.xml pins the version of Kafka. Maven copies the jars once into the user's cache directory; later starts need neither
// Maven nor a network.
//
// # Build tag
//
// Tests that start a broker have the build tag kafka, so that go test ./... needs no Java and is fast; make test-kafka
// runs them. Tests that can use any broker take it from internal/testing/testbroker, which the tag controls:
//
//	go test -race -tags kafka ./processors/turn/integration
//
// # When a broker ends
//
// A cluster ends with [Cluster.Close], [New]'s with its test, and the shared one with [Main]. If the test binary
// is killed, Linux kills its brokers; on other systems they keep running. A later start removes directories that are no
// longer used. Only what [Detach] started (make kafka) outlives its starter, until [EndDetached].
//
// # How it differs from a production Kafka
//
// Topics are not created by use. A new group does not wait for more members, and the session timeout of a group may
// be one second. A dead broker of three is noticed within three seconds, and leaders move only when they must. The
// internal topics have five partitions. The heap is 512 MB.
package kafkatest
