// Package integration holds the tests of package delivery against a broker: both groups, sinks and receivers over real
// HTTP, kills of each, and a receiver that never answers. There is nothing in it to import.
package integration
