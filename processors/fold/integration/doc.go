// Package integration contains the tests of package group against a broker: kills, both guarantees, invalid records, and
// the size of a turn in the changelog. It exports nothing.
package integration
