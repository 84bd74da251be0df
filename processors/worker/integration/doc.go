// Package integration tests workers as processes that are killed, stopped and joined, on an embedded broker or, with the
// build tag kafka, on a real Kafka.
package integration
