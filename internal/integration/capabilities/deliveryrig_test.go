package capabilities

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/topics"
)

const (
	deliveryPartitions = 4
	lease              = 1500 * time.Millisecond
	attemptTimeout     = 500 * time.Millisecond
)

// deliveryRig runs the deliveries of an agent: both groups, sinks, and a reader of the receipts.
type deliveryRig struct {
	*world
	to      *processors.KafkaPublisher
	timeout time.Duration // of an attempt
	config  delivery.Config

	finals map[string]map[string]topics.Receipt // by delivery ID and record ID
	took   []time.Duration                      // from output to final receipt, of delivered ones
	since  map[string]time.Time                 // when the output was written, by session
}

func newDeliveryRig(tb testing.TB, guarantee processors.Guarantee, c delivery.Config) *deliveryRig {
	tb.Helper()
	c.Lease = cmp.Or(c.Lease, lease)
	w := newWorld(tb, guarantee, deliveryPartitions, topics.WithDeliveries())
	r := &deliveryRig{
		world: w, to: w.publisher(), timeout: attemptTimeout, config: c,
		finals: map[string]map[string]topics.Receipt{}, since: map[string]time.Time{},
	}
	r.run(delivery.RoutesGraph, "routes")
	return r
}

// run starts one of the groups.
func (r *deliveryRig) run(graph func(string, delivery.Config) (*goka.GroupGraph, error), name string) *instance {
	r.tb.Helper()
	g, err := graph(r.agent, r.config)
	require.NoError(r.tb, err)
	return r.group(g, name)
}

// sink starts a sink with a publisher of its own. kill ends it like a crash: attempts in flight get no receipt.
func (r *deliveryRig) sink(mapping, name string, c sink.Config) (kill func()) {
	r.tb.Helper()
	services, err := sink.ParseServices(mapping)
	require.NoError(r.tb, err)
	to, err := processors.NewPublisher(r.brokers)
	require.NoError(r.tb, err)
	client := sink.NewHTTP(services, sink.WithTimeout(r.timeout))
	c.Transports, c.Name, c.Grace = map[string]sink.Transport{topics.KindHTTP: client}, name, 50*time.Millisecond
	s, err := sink.New(r.agent, to, c)
	require.NoError(r.tb, err)
	stop := r.start(func(ctx context.Context) error { return s.Run(ctx, r.brokers) })
	kill = sync.OnceFunc(func() {
		require.NoError(r.tb, to.Close())
		stop()
		client.Close()
	})
	r.tb.Cleanup(kill)
	return kill
}

// watch reads the final receipts.
func (r *deliveryRig) watch() {
	r.tb.Helper()
	r.read(func(record *kgo.Record) {
		receipt := decode(r.world, r.topics.DeliveryReceipts, record)
		if !receipt.Final {
			return
		}
		finals := r.finals[receipt.DeliveryID]
		if finals == nil {
			finals = map[string]topics.Receipt{}
			r.finals[receipt.DeliveryID] = finals
			if begun, ok := r.since[receipt.SessionID]; ok && receipt.Outcome == topics.OutcomeDelivered {
				r.took = append(r.took, time.Since(begun))
			}
		}
		finals[header(record, topics.HeaderID)] = receipt
	}, r.topics.DeliveryReceipts.Name())
}

// writeRouteAndOutput writes the route of a session and the output of its turn, as the turn does with turn.Config.Delivery.
func (r *deliveryRig) writeRouteAndOutput(session, service string, routeFirst bool) {
	r.tb.Helper()
	route, routeID := "route-"+session, topics.RouteID(session, "route-"+session)
	reply := processors.Outbound{
		Topic: r.topics.ReplyTo.Name(), Key: session, Headers: goka.Headers{topics.HeaderID: []byte(route)},
		Value: []byte(fmt.Sprintf(`{"callbackService":%q,"bearerToken":"token of %s"}`, service, session)),
	}
	output, err := processors.OutboundOf(r.topics.MessageOutput, session, topics.Output{
		SessionID: &session, Content: "answer to " + session, SourceAgent: "agent-1",
		ReplyTo: topics.Raw(fmt.Sprintf(`{"callbackService":%q,"route_id":%q}`, service, routeID)),
	}, "turn-"+session+"/0/output/0")
	require.NoError(r.tb, err)
	records := []processors.Outbound{output, reply}
	if routeFirst {
		slices.Reverse(records)
	}
	r.mu.Lock()
	r.since[session] = time.Now()
	r.mu.Unlock()
	require.NoError(r.tb, r.to.Publish(context.Background(), records...))
}

// ended counts the deliveries with a final receipt by outcome.
func (r *deliveryRig) ended() map[topics.Outcome]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	count := map[topics.Outcome]int{}
	for _, finals := range r.finals {
		require.Len(r.tb, finals, 1, "all final receipts of a delivery have one ID")
		for _, f := range finals {
			count[f.Outcome]++
		}
	}
	return count
}

// countEnded returns how many deliveries have a final receipt.
func (r *deliveryRig) countEnded() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.finals)
}

// await waits until n deliveries have a final receipt and counts them by outcome.
func (r *deliveryRig) await(n int) map[topics.Outcome]int {
	r.tb.Helper()
	if !assert.Eventually(r.tb, func() bool {
		total := 0
		for _, n := range r.ended() {
			total += n
		}
		return total == n
	}, waitLimit, 10*time.Millisecond) {
		r.tb.Fatal(r.progress(n), "\n", kill.Stuck(context.Background(), r.brokers, r.agent))
	}
	return r.ended()
}

func number(i int) string { return "s" + strconv.Itoa(i) }
