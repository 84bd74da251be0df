package kafka

import "github.com/rcrowley/go-metrics"

// unmeasured is a registry for clients whose metrics nobody reads: Sarama keeps about fifteen for each request, with a
// random reservoir behind each histogram, which is a twentieth of what a small record costs.
type unmeasured struct{ metrics.Registry }

func newUnmeasured() metrics.Registry { return &unmeasured{metrics.NewRegistry()} }

// GetOrRegister gives metrics that do nothing.
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
