package capabilities

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
)

// unresponsiveTimeout is how long an attempt at the unresponsive receiver takes: longer than a test waits for deliveries, so that
// it fails if one of them waits for that receiver.
const unresponsiveTimeout = 2 * waitLimit

// healthyP99 returns the 99th percentile of the time that deliveries to healthy receivers take at a steady pace, while
// hanging deliveries are in flight to an unresponsive receiver.
func healthyP99(t testing.TB, deliveries, hanging int) time.Duration {
	t.Helper()
	r := newDeliveryRig(t, processors.AtLeastOnce, delivery.Config{Lease: 2 * unresponsiveTimeout})
	r.timeout = unresponsiveTimeout
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
	r.sink(mapping+"silent:http://"+silent.address, "sink", sink.Config{})
	r.watch()
	pace := time.NewTicker(2 * time.Millisecond)
	defer pace.Stop()
	for i := range 20 { // warm up: the first deliveries wait until the groups have formed
		r.writeRouteAndOutput("warm-"+number(i), "healthy-0", true)
	}
	r.await(20)
	r.mu.Lock()
	r.took = nil
	r.mu.Unlock()
	for i := range hanging {
		r.writeRouteAndOutput("hanging-"+number(i), "silent", true)
	}
	for i := range deliveries {
		<-pace.C
		r.writeRouteAndOutput(number(i), fmt.Sprintf("healthy-%d", i%4), true)
	}
	require.Eventually(t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.took) == deliveries
	}, waitLimit, 5*time.Millisecond)
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(r.took)
	percentile := func(percent int) time.Duration { return r.took[len(r.took)*percent/100] }
	t.Logf("beside %d that hang: p50 %v, p90 %v, p99 %v", hanging, percentile(50), percentile(90), percentile(99))
	return percentile(99)
}

// BenchmarkUnresponsiveReceiver measures how much they are delayed.
func TestUnresponsiveReceiverDelaysNoOther(t *testing.T) {
	t.Logf("p99 of healthy receivers beside one that never answers: %v", healthyP99(t, 150, 50))
}

// BenchmarkUnresponsiveReceiver reports medians of three rounds. The p99 of 1,000 deliveries is the tenth slowest, which
// varies on a busy machine.
func BenchmarkUnresponsiveReceiver(b *testing.B) {
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
