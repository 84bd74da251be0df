// Package kafkatest starts a real Apache Kafka for tests: KRaft, one node or three, each a process of its own on the
// loopback interface, from the released jars. It needs Java 17 or newer and, the first time, Maven and its registry.
//
// [Start] starts a cluster whose nodes a test can kill, stop, pause and restart, and whose leaders it can move; [New]
// closes it with the test. [Shared] is for tests that only need a broker: it returns one node for all tests of the binary,
// or the cluster in KAFKA_BOOTSTRAP_SERVERS. Without a broker, tests fail with the reason; they are never skipped.
//
// pom.xml pins the version of Kafka. Maven copies the jars once into the user's cache directory; later starts need neither
// Maven nor a network.
//
// # Build tag
//
// Tests that start a broker have the build tag kafka, so that go test ./... needs no Java and is fast; make test-kafka
// runs them. Tests that can use any broker take it from internal/testing/testbroker, which the tag controls:
//
//	go test -race -tags kafka ./internal/integration/turns
//
// # When a broker stops
//
// [Cluster.Close] stops a cluster. The clusters of [New] are closed with their test, and [Main] closes the shared one. If
// the test binary is killed, Linux kills its brokers; on other systems they keep running. A later start removes directories
// that are no longer used. Only a cluster of [Detach] (make kafka) outlives its starter, until [EndDetached].
//
// # How it differs from a production Kafka
//
// Topics are not created automatically. A new group does not wait for more members, and a group's session timeout can be
// as short as one second. The failure of one of three brokers is detected within three seconds, and leaders are not
// rebalanced automatically. The internal topics have five partitions. The heap is 512 MB.
package kafkatest
