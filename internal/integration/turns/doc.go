// Package turns tests turns and their workers against a broker: invalid input over the plain wire format, killed processes, a
// matrix of faults injected while turns run, and the calls of models and tools whose workers are deployed, killed and paused.
// The package internal/testing/wiretest plays and judges the turns. By default the broker is embedded, with the build tag kafka
// it is a real Kafka. There is nothing to import.
package turns
