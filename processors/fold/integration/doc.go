// Package integration holds the tests of package fold's group against a broker: kills, both guarantees, bad records, what
// a turn costs in the changelog. There is nothing in it to import.
package integration
