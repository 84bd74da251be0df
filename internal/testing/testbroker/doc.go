// Package testbroker starts the broker of a test binary: without the build tag kafka an embedded one, with the tag a real Kafka
// (kafkatest.Shared). A test that uses this package runs on both:
//
//	go test -race ./internal/integration/capabilities
//	go test -race -tags kafka ./internal/integration/capabilities
//
// All tests of a binary share the broker, a real Kafka possibly with earlier test binaries: every test uses its own [Agent], and
// consumer groups named after it.
package testbroker

// TestingM is the interface of *testing.M that goleak uses.
type TestingM interface{ Run() int }
