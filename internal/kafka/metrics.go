package kafka

import "github.com/rcrowley/go-metrics"

// unmeasured is a registry for clients whose metrics are not read. Sarama updates about fifteen metrics per request, with
// a random reservoir behind each histogram, which is a twentieth of the cost of a small record.
type unmeasured struct{ metrics.Registry }

func newUnmeasured() metrics.Registry { return &unmeasured{metrics.NewRegistry()} }

// GetOrRegister returns metrics that record nothing.
func (u *unmeasured) GetOrRegister(name string, metric any) any {
	switch metric.(type) {
	case func() metrics.Meter, metrics.Meter:
		return metrics.NilMeter{}
	case func() metrics.Histogram, metrics.Histogram:
		return metrics.NilHistogram{}
	case func() metrics.Counter, metrics.Counter:
		return metrics.NilCounter{}
	default:
		return u.Registry.GetOrRegister(name, metric)
	}
}
