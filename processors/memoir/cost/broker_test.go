package cost_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/memoir/cost"
	"github.com/turntable-streams/turntable/topics"
)

const waitLimit = 3 * time.Minute

// stage is a broker with both groups, and what the topics session-cost and spending say.
type stage struct {
	t         *testing.T
	guarantee processors.Guarantee
	brokers   []string
	topics    topics.Catalog
	to        *processors.KafkaPublisher

	mu       sync.Mutex
	latest   map[string]string          // by topic and key
	written  map[string]map[string]bool // the values by topic and turntable.id
	repeated int                        // records with the topic and ID of an earlier one
}

func newStage(t *testing.T, guarantee processors.Guarantee) *stage {
	t.Helper()
	s := &stage{
		t: t, guarantee: guarantee, brokers: testbroker.Start(t), latest: map[string]string{}, written: map[string]map[string]bool{},
	}
	var err error
	s.topics, err = topics.For(testbroker.Agent(), topics.WithCosts())
	require.NoError(t, err)
	s.to, err = processors.NewPublisher(s.brokers)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.to.Close()) })
	return s
}

// run starts a group and waits until its state is Running. The returned function kills it.
func (s *stage) run(build func(string, cost.Config) (*goka.GroupGraph, error)) (kill func()) {
	s.t.Helper()
	graph, err := build(s.topics.Agent, cost.Config{})
	require.NoError(s.t, err)
	p, err := processors.New(s.brokers, graph, processors.WithTopics(s.topics), processors.WithPartitions(2),
		processors.WithInstance(string(graph.Group())), processors.WithGuarantee(s.guarantee), processors.WithTick(10*time.Millisecond))
	require.NoError(s.t, err)
	stop := s.start(p.Run)
	require.Eventually(s.t, func() bool { return p.Health().State == processors.Running }, waitLimit, 5*time.Millisecond)
	return func() {
		p.Kill()
		stop()
	}
}

// start runs a function until the test ends or stop is called.
func (s *stage) start(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ran; !errors.Is(err, processors.ErrKilled) {
			require.NoError(s.t, err)
		}
	})
	s.t.Cleanup(stop)
	return stop
}

// watch reads the committed records of session-cost and spending until the test ends.
func (s *stage) watch() {
	s.t.Helper()
	reader, err := processors.NewTableFollower(s.brokers, []string{s.topics.SessionCost.Name(), s.topics.Spending.Name()},
		func(r processors.Inbound) {
			s.mu.Lock()
			defer s.mu.Unlock()
			id := r.Topic + " " + string(r.Header(topics.HeaderID))
			if s.written[id] == nil {
				s.written[id] = map[string]bool{}
			} else {
				s.repeated++
			}
			s.written[id][string(r.Value)] = true
			s.latest[r.Topic+" "+string(r.Key)] = string(r.Value)
		})
	require.NoError(s.t, err)
	s.start(reader.Run)
	<-reader.Ready()
}

// costOf returns the cost that a topic says for a key.
func costOf[T any](s *stage, topic topics.Topic[T], key string, dollars func(T) float64) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	raw, ok := s.latest[topic.Name()+" "+key]
	if !ok {
		return 0
	}
	d := topic.Codec().Unmarshal([]byte(raw))
	if d.Err != nil {
		s.t.Errorf("%s %s: %v", topic.Name(), key, d.Err)
	}
	return dollars(d.Value)
}

func (s *stage) spent(scope string) float64 {
	return costOf(s, s.topics.Spending, scope, func(v topics.Spending) float64 { return v.CostUSD })
}

// Both groups are killed again and again while they add up costs of which some are written twice. The totals of sessions, users
// and the tenant are the sums over the distinct records.
func TestTotalsAreExactWhenTheGroupsAreKilled(t *testing.T) {
	for _, guarantee := range testbroker.Guarantees(t, processors.AtLeastOnce, processors.ExactlyOnce) {
		t.Run(string(guarantee), func(t *testing.T) {
			const n, rounds = 240, 4
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 1))
			s := newStage(t, guarantee)
			killSessions, killScopes := s.run(cost.Graph), s.run(cost.SpendingGraph)
			s.watch()

			wanted := map[string]int{} // in cents
			var written []processors.Outbound
			for i := range n {
				session, user := fmt.Sprint("s", random.IntN(5)), fmt.Sprint("u", random.IntN(2))
				cents := random.IntN(100)
				dollars, tenant := float64(cents)/100, "acme"
				out, err := processors.OutboundOf(s.topics.ModelCosts, session, topics.ModelCost{
					SessionID: &session, UserID: &user, TenantID: &tenant, LLMCalls: 1, CostUSD: &dollars, AtMS: 1_790_000_000_000,
				}, fmt.Sprint("cost-", i))
				require.NoError(t, err)
				written = append(written, out)
				wanted[session] += cents
				wanted[topics.UserScope(user)] += cents
				wanted["tenant/acme"] += cents
				records := []processors.Outbound{out}
				if random.IntN(3) == 0 {
					records = append(records, written[random.IntN(len(written))])
				}
				require.NoError(t, s.to.Publish(t.Context(), records...))
				if i%(n/rounds) == n/rounds/2 {
					killSessions()
					killSessions = s.run(cost.Graph)
					killScopes()
					killScopes = s.run(cost.SpendingGraph)
				}
			}
			for name, cents := range wanted {
				want := float64(cents) / 100
				require.Eventually(t, func() bool {
					if name[0] == 's' {
						return costOf(s, s.topics.SessionCost, name, func(v topics.SessionCost) float64 { return *v.EstimatedCostUSD }) == want
					}
					return s.spent(name) == want
				}, waitLimit, 5*time.Millisecond, "%s: want %v", name, want)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			for id, values := range s.written {
				require.Len(t, values, 1, "repeats of %s are equal", id)
			}
			if guarantee == processors.ExactlyOnce {
				require.Zero(t, s.repeated)
			}
			t.Logf("%d records, %d repeated", len(s.written), s.repeated)
		})
	}
}
