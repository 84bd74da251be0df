// Package integration tests delegation between two instances in one process: two groups of package peer, two doors, two sinks
// and two configurations, which meet over real HTTP. It contains only tests.
package integration
