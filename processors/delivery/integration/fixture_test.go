package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

const (
	partitions = 4
	waitLimit  = 3 * time.Minute
	lease      = 1500 * time.Millisecond
	timeout    = 500 * time.Millisecond
)

// fixture runs the deliveries of an agent: a broker, both groups, and a reader of the receipts.
type fixture struct {
	t         testing.TB
	guarantee processors.Guarantee
	brokers   []string
	agent     string
	topics    topics.Catalog
	to        *processors.KafkaPublisher
	timeout   time.Duration // of an attempt
	opts      []delivery.Option

	mu     sync.Mutex
	finals map[string]map[string]topics.Receipt // by delivery ID and record ID
	took   []time.Duration                      // from output to final receipt, of delivered ones
	since  map[string]time.Time                 // when the output was written, by session
}

func newFixture(t testing.TB, guarantee processors.Guarantee, opts ...delivery.Option) *fixture {
	t.Helper()
	r := &fixture{
		t: t, guarantee: guarantee, brokers: testbroker.Start(t), agent: testbroker.Agent(), timeout: timeout,
		opts:   append([]delivery.Option{delivery.WithLease(lease)}, opts...),
		finals: map[string]map[string]topics.Receipt{}, since: map[string]time.Time{},
	}
	var err error
	r.topics, err = topics.For(r.agent, topics.WithDeliveries())
	require.NoError(t, err)
	r.to, err = processors.NewPublisher(r.brokers)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.to.Close()) })
	r.run(delivery.RoutesGraph, "routes")
	return r
}

// group is a running processor.
type group struct {
	*processors.Processor
	stop func()
}

// options returns the options of an instance of either group.
func options(catalog topics.Catalog, instance string, guarantee processors.Guarantee) []processors.Option {
	return []processors.Option{
		processors.WithTopics(catalog), processors.WithPartitions(partitions), processors.WithInstance(instance),
		processors.WithGuarantee(guarantee), processors.WithTick(10 * time.Millisecond),
	}
}

// run starts one of the groups and waits until its state is Running.
func (r *fixture) run(graph func(string, ...delivery.Option) (*goka.GroupGraph, error), name string) *group {
	r.t.Helper()
	g, err := graph(r.agent, r.opts...)
	require.NoError(r.t, err)
	p, err := processors.New(r.brokers, g, options(r.topics, name, r.guarantee)...)
	require.NoError(r.t, err)
	stop := r.start(p.Run)
	require.Eventually(r.t, func() bool { return p.Health().State == processors.Running }, waitLimit, 5*time.Millisecond,
		"%v", p.Health())
	return &group{p, stop}
}

// start runs a function until the test ends or stop is called.
func (r *fixture) start(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ran; !errors.Is(err, processors.ErrKilled) {
			require.NoError(r.t, err)
		}
	})
	r.t.Cleanup(stop)
	return stop
}

// sink starts a sink with a publisher of its own. kill ends it like a crash: attempts in flight get no receipt.
func (r *fixture) sink(mapping, name string, opts ...sink.Option) (kill func()) {
	r.t.Helper()
	services, err := sink.ParseServices(mapping)
	require.NoError(r.t, err)
	to, err := processors.NewPublisher(r.brokers)
	require.NoError(r.t, err)
	client := sink.NewHTTP(services, sink.WithTimeout(r.timeout))
	s, err := sink.New(r.agent, to, append([]sink.Option{
		sink.WithTransport(topics.KindHTTP, client), sink.WithName(name), sink.WithDrain(50 * time.Millisecond),
	}, opts...)...)
	require.NoError(r.t, err)
	stop := r.start(func(ctx context.Context) error { return s.Run(ctx, r.brokers) })
	kill = sync.OnceFunc(func() {
		require.NoError(r.t, to.Close())
		stop()
		client.Close()
	})
	r.t.Cleanup(kill)
	return kill
}

// watch reads the final receipts.
func (r *fixture) watch() {
	r.start(func(ctx context.Context) error {
		w, err := worker.New(r.agent+"-watchers", []string{r.topics.DeliveryReceipts.Name()},
			func(_ context.Context, in worker.Record) error {
				d := r.topics.DeliveryReceipts.Codec().Unmarshal(in.Value)
				if d.Err != nil || !d.Value.Final {
					return d.Err
				}
				r.mu.Lock()
				defer r.mu.Unlock()
				if r.finals[d.Value.DeliveryID] == nil {
					r.finals[d.Value.DeliveryID] = map[string]topics.Receipt{}
					if begun, ok := r.since[d.Value.SessionID]; ok && d.Value.Outcome == topics.OutcomeDelivered {
						r.took = append(r.took, time.Since(begun))
					}
				}
				r.finals[d.Value.DeliveryID][string(in.Header(topics.HeaderID))] = d.Value
				return nil
			}, worker.WithConcurrency(1), worker.WithDrop())
		if err != nil {
			return err
		}
		return w.Run(ctx, r.brokers)
	})
}

// writeRouteAndOutput writes the route of a session and the output of its turn, as the turn does with turn.WithDelivery.
func (r *fixture) writeRouteAndOutput(session, service string, routeFirst bool) {
	r.t.Helper()
	route, routeID := "route-"+session, topics.RouteID(session, "route-"+session)
	reply := processors.Outbound{
		Topic: r.topics.ReplyTo.Name(), Key: session, Headers: goka.Headers{topics.HeaderID: []byte(route)},
		Value: []byte(fmt.Sprintf(`{"callbackService":%q,"bearerToken":"token of %s"}`, service, session)),
	}
	output, err := processors.OutboundOf(r.topics.MessageOutput, session, topics.Output{
		SessionID: &session, Content: "answer to " + session, SourceAgent: "agent-1",
		ReplyTo: topics.Raw(fmt.Sprintf(`{"callbackService":%q,"route_id":%q}`, service, routeID)),
	}, "turn-"+session+"/0/output/0")
	require.NoError(r.t, err)
	records := []processors.Outbound{output, reply}
	if routeFirst {
		slices.Reverse(records)
	}
	r.mu.Lock()
	r.since[session] = time.Now()
	r.mu.Unlock()
	require.NoError(r.t, r.to.Publish(context.Background(), records...))
}

// ended counts the deliveries with a final receipt by outcome.
func (r *fixture) ended() map[topics.Outcome]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	count := map[topics.Outcome]int{}
	for _, finals := range r.finals {
		require.Len(r.t, finals, 1, "all final receipts of a delivery have one ID")
		for _, f := range finals {
			count[f.Outcome]++
		}
	}
	return count
}

// countEnded returns how many deliveries have a final receipt.
func (r *fixture) countEnded() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.finals)
}

// await waits until n deliveries have a final receipt and counts them by outcome.
func (r *fixture) await(n int) map[topics.Outcome]int {
	r.t.Helper()
	if !assert.Eventually(r.t, func() bool {
		total := 0
		for _, n := range r.ended() {
			total += n
		}
		return total == n
	}, waitLimit, 10*time.Millisecond) {
		r.t.Fatal(r.progress(n))
	}
	return r.ended()
}

func number(i int) string { return "s" + strconv.Itoa(i) }
