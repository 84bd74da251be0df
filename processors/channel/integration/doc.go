// Package integration has the tests of the way out: deliveries to channels with both groups of package delivery, a sink, the transport
// and adapters, on an embedded broker and against servers that play the platforms.
package integration
