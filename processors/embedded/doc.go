// Package embedded runs a Kafka broker inside the process, for development and tests: one node on a random loopback
// port, speaking Kafka's wire format, with its log in memory or in a directory. It has no replication and hardly
// any limits; it is not for production.
//
// A broker with a directory keeps acknowledged records when its process ends, even if it is killed: they are in the
// operating system's page cache. A crash of the machine can lose them.
package embedded
