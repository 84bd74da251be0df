// Package integration holds the tests of package turn against a broker: attacks from outside by the plain wire format,
// and processes that are killed. Everything is played and judged by internal/wiretest. There is nothing in it to import.
package integration
