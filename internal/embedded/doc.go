// Package embedded runs a Kafka broker inside the process, for the examples and for tests: one node on a random loopback
// port, speaking Kafka's wire format, with its log in memory or in a directory. It has no replication and no limits
// worth the name; it is not for production.
//
// A broker with a directory survives the end of its process, an unclean one too: what was acknowledged is in the
// operating system's page cache by then. Only WithSyncWrites also survives the end of the machine.
package embedded
