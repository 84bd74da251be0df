// Package capabilities has the tests of single capabilities on a broker: the fold, gates, deliveries and channels. Their
// processes are killed and restarted, under both guarantees.
package capabilities
