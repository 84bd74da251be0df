// Package integration tests package turn against a broker: invalid input over the plain wire format, killed processes, and
// a matrix of faults injected while turns run. The package internal/testing/wiretest plays and judges the turns. There is
// nothing to import.
package integration
