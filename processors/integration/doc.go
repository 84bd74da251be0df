// Package integration contains the tests of package processors that need a broker and both guarantees: handlers that fail.
// It exports nothing.
package integration
