// Package integration tests package delivery against a broker: both groups, sinks, and receivers over HTTP, with kills of
// each and with an unresponsive receiver. It contains only tests.
package integration
