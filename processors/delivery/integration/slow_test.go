package integration

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery"
)

// silence is how long an attempt at the receiver that never answers takes.
const silence = 15 * time.Second

// healthyP99 is how long deliveries to healthy receivers take, one after another at a steady pace, while so many are on
// their way to one that never answers.
func healthyP99(t testing.TB, deliveries, hanging int) time.Duration {
	t.Helper()
	r := newRig(t, processors.AtLeastOnce, delivery.WithLease(2*silence))
	r.timeout = silence
	r.run(delivery.Graph, "deliveries")
	release := make(chan struct{})
	mapping := ""
	for i := range 4 {
		mapping += fmt.Sprintf("healthy-%d:http://%s,", i, newReceiver(t).address)
	}
	silent := newReceiver(t)
	silent.answer = func(_ http.ResponseWriter, q *http.Request, _ string) {
		select {
		case <-q.Context().Done():
		case <-release:
		}
	}
	t.Cleanup(func() { close(release) })
	r.sink(mapping+"silent:http://"+silent.address, "sink")
	r.watch()
	pace := time.NewTicker(2 * time.Millisecond)
	defer pace.Stop()
	for i := range 20 { // what comes first waits for the groups to form
		r.ask("warm-"+number(i), "healthy-0", true)
	}
	r.await(20)
	r.mu.Lock()
	r.took = nil
	r.mu.Unlock()
	for i := range hanging {
		r.ask("hanging-"+number(i), "silent", true)
	}
	for i := range deliveries {
		<-pace.C
		r.ask(number(i), fmt.Sprintf("healthy-%d", i%4), true)
	}
	require.Eventually(t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.took) == deliveries
	}, patience, 5*time.Millisecond)
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(r.took)
	part := func(percent int) time.Duration { return r.took[len(r.took)*percent/100] }
	t.Logf("beside %d that hang: p50 %v, p90 %v, p99 %v", hanging, part(50), part(90), part(99))
	return part(99)
}

func TestReceiverThatNeverAnswersDelaysNobodyElse(t *testing.T) {
	alone, beside := healthyP99(t, 150, 0), healthyP99(t, 150, 50)
	t.Logf("p99 of healthy receivers: %v, beside one that never answers %v", alone, beside)
	// Whoever waited for the silent one would wait for its time-out. BenchmarkSlowReceiver measures.
	require.Less(t, beside, silence/2)
}

// BenchmarkSlowReceiver takes the medians of three rounds: a p99 of 1,000 is the tenth slowest, which a busy machine
// makes by itself.
func BenchmarkSlowReceiver(b *testing.B) {
	for range b.N {
		var alone, beside []time.Duration
		for range 3 {
			alone = append(alone, healthyP99(b, 1000, 0))
			beside = append(beside, healthyP99(b, 1000, 100))
		}
		b.ReportMetric(median(alone), "alone-p99-ms")
		b.ReportMetric(median(beside), "beside-p99-ms")
	}
	b.ReportMetric(0, "ns/op")
}

func median(times []time.Duration) (ms float64) {
	slices.Sort(times)
	return float64(times[len(times)/2].Microseconds()) / 1000
}
