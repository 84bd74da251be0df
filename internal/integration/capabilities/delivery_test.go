package capabilities

import (
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/topics"
)

func quick(budget time.Duration) delivery.Service {
	return delivery.Service{
		Budget: budget, Initial: 20 * time.Millisecond, Longest: 200 * time.Millisecond,
	}
}

// closedPort returns the URL of a port on which nothing listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return "http://" + l.Addr().String()
}

func TestHealthyReceiversAreServedWhileOthersAreDown(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		// Only deliveries to receivers that are down have a short budget, so that a slow machine fails no healthy receiver.
		r := newDeliveryRig(t, guarantee, delivery.Config{
			DefaultService: quick(waitLimit), Services: map[string]delivery.Service{"down": {Budget: 2 * time.Second}},
			Lease: waitLimit, RouteTTL: time.Hour, RouteWait: waitLimit,
			Breaker: delivery.Breaker{Failures: 5, Open: 200 * time.Millisecond, Longest: 400 * time.Millisecond},
		})
		r.timeout = waitLimit
		r.run(delivery.Graph, "deliveries")
		healthy, busy := newReceiver(t), newReceiver(t)
		var busyRequests atomic.Int64
		busy.answer = func(w http.ResponseWriter, _ *http.Request, _ string) {
			w.Header().Set("Retry-After", "1")
			code := http.StatusTooManyRequests
			if busyRequests.Add(1) > 1 {
				code = http.StatusOK
			}
			w.WriteHeader(code)
		}
		r.sink(fmt.Sprintf("healthy:http://%s,busy:http://%s,down:%s", healthy.address, busy.address, closedPort(t)), "sink", sink.Config{})
		r.watch()
		for i := range 90 {
			r.writeRouteAndOutput(number(i), []string{"healthy", "down", "unknown"}[i%3], i%2 == 0)
		}
		r.writeRouteAndOutput("busy", "busy", true)
		require.Equal(t, map[topics.Outcome]int{topics.OutcomeDelivered: 31, topics.OutcomeDead: 60}, r.await(91))
		bodies, repeats := healthy.taken()
		require.Len(t, bodies, 30)
		require.Zero(t, repeats)
		require.Contains(t, bodies, `{"result":"answer to s3"} Bearer token of s3`)
		require.GreaterOrEqual(t, busyRequests.Load(), int64(2))
	})
}

func TestDeadDeliveryIsRequeued(t *testing.T) {
	r := newDeliveryRig(t, processors.AtLeastOnce, delivery.Config{DefaultService: quick(100 * time.Millisecond), Lease: waitLimit})
	r.timeout = waitLimit
	r.run(delivery.Graph, "deliveries")
	receiver := newReceiver(t)
	require.NoError(t, receiver.Kill())
	r.sink("harbor:http://"+receiver.address, "sink", sink.Config{})
	r.watch()
	r.writeRouteAndOutput("s", "harbor", true)
	require.Equal(t, map[topics.Outcome]int{topics.OutcomeDead: 1}, r.await(1))
	receiver.restart()
	r.mu.Lock()
	var id string
	for id = range r.finals {
		delete(r.finals, id)
	}
	r.mu.Unlock()
	require.NoError(t, delivery.Requeue(t.Context(), r.to, r.agent, "s", id))
	require.Equal(t, map[topics.Outcome]int{topics.OutcomeDelivered: 1}, r.await(1))
	bodies, _ := receiver.taken()
	require.Equal(t, []string{`{"result":"answer to s"} Bearer token of s`}, bodies)
}
