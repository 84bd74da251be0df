// Package integration holds the tests of package turn against a broker: attacks from outside by the plain wire format,
// processes that are killed, and a matrix of faults done while turns run. Everything is played and judged by
// internal/testing/wiretest. There is nothing in it to import.
package integration
