//go:build kafka

package integration

// The long form: on a real Kafka.
const (
	short  = false
	rounds = 10 // how often a fault is done
)

func brokerFaults() []fault { return nil }
