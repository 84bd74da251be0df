// Package testbroker gives tests the broker that the build tag kafka chooses: without it an embedded one for each test,
// with it the real Kafka of the test binary (kafkatest.Shared). A test that takes its broker from here runs on both:
//
//	go test -race ./processors/fold/integration
//	go test -race -tags kafka ./processors/fold/integration
//
// The real one is shared, perhaps with binaries of other days: what a test writes belongs to an [Agent] of its own, and
// so do the names of its groups.
package testbroker

import (
	"crypto/rand"
	"strings"
)

// TestingM is what *testing.M and goleak call a test binary's tests.
type TestingM interface{ Run() int }

// Agent is an agent name that nobody has used on the broker.
func Agent() string { return "agent-" + strings.ToLower(rand.Text()[:12]) }
