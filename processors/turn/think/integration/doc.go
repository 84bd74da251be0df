// Package integration counts the calls of models whose workers are deployed, killed and paused, on an embedded broker or,
// with the build tag kafka, on a real Kafka.
package integration
