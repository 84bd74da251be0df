//go:build !kafka

package turns

// The short form: on the embedded broker, for every test run.
const (
	short  = true
	rounds = 3 // how often a fault is done
	users  = 1 // who ask at a time
)

func brokerFaults() []fault { return nil }
