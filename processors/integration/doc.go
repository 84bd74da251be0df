// Package integration contains the tests of package processors that need a broker and both guarantees: handlers that fail.
// It also contains the tests of capabilities that work together. It exports nothing.
package integration
