package memoir_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/internal/rows/memoirrow"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/memoir"
	"github.com/turntable-streams/turntable/topics"
)

const waitLimit = 3 * time.Minute

// stage is a broker with the group of an agent. The test is the turn and the worker.
type stage struct {
	t         *testing.T
	guarantee processors.Guarantee
	brokers   []string
	topics    topics.Catalog
	to        *processors.KafkaPublisher

	mu      sync.Mutex
	current *processors.Processor
	ends    map[string]bool // the ends of which a snapshot was written
	ids     map[string]int  // how often each snapshot was written
}

func newStage(t *testing.T, guarantee processors.Guarantee) *stage {
	t.Helper()
	s := &stage{t: t, guarantee: guarantee, brokers: testbroker.Start(t), ends: map[string]bool{}, ids: map[string]int{}}
	var err error
	s.topics, err = topics.For(testbroker.Agent(), topics.WithMemoir())
	require.NoError(t, err)
	s.to, err = processors.NewPublisher(s.brokers)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.to.Close()) })
	return s
}

// run starts the group and waits until its state is Running.
func (s *stage) run(c memoir.Config) (kill func()) {
	s.t.Helper()
	graph, err := memoir.Graph(s.topics.Agent, c)
	require.NoError(s.t, err)
	p, err := processors.New(s.brokers, graph, processors.WithTopics(s.topics), processors.WithPartitions(2),
		processors.WithInstance("one"), processors.WithGuarantee(s.guarantee), processors.WithTick(10*time.Millisecond))
	require.NoError(s.t, err)
	stop := s.start(p.Run)
	require.Eventually(s.t, func() bool { return p.Health().State == processors.Running }, waitLimit, 5*time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = p
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

// follow runs a reader of the snapshots.
func (s *stage) follow(read func(processors.Inbound)) {
	s.t.Helper()
	f, err := processors.NewTableFollower(s.brokers, []string{s.topics.MemoirContextSessionEnd.Name()}, read)
	require.NoError(s.t, err)
	s.start(f.Run)
}

// work runs a worker that adds the session of each snapshot to its memory. If versions is false, it is like FlightDeck's.
func (s *stage) work(versions bool) {
	s.t.Helper()
	s.follow(func(r processors.Inbound) {
		snapshot := s.topics.MemoirContextSessionEnd.Codec().Unmarshal(r.Value).Value
		id := string(r.Header(topics.HeaderID))
		end, _, _ := strings.Cut(id, "/")
		s.mu.Lock()
		s.ends[end] = true
		s.ids[id]++
		s.mu.Unlock()
		text := strings.TrimSpace(snapshot.MemoirContext + " " + *snapshot.SessionID)
		out := s.outbound(string(r.Key), &text, "", "")
		if versions {
			out = s.outbound(string(r.Key), &text, id+"/memory", string(r.Header(topics.HeaderMemoirVersion)))
		}
		s.publish(out)
	})
}

// outbound returns a record of memoir-context.
func (s *stage) outbound(user string, text *string, id, version string) processors.Outbound {
	out := processors.Outbound{Topic: s.topics.MemoirContext.Name(), Key: user, Headers: goka.Headers{}}
	if text != nil {
		out.Value = []byte(*text)
	}
	if id != "" {
		out.Headers[topics.HeaderID] = []byte(id)
	}
	if version != "" {
		out.Headers[topics.HeaderMemoirVersion] = []byte(version)
	}
	return out
}

func (s *stage) publish(r processors.Outbound) {
	if err := s.to.Publish(context.Background(), r); err != nil {
		s.t.Error(err)
	}
}

// end writes ended sessions of some users.
func (s *stage) end(from, to int, users ...string) {
	s.t.Helper()
	for i := from; i < to; i++ {
		session := fmt.Sprint("s", i)
		out, err := processors.OutboundOf(s.topics.MemoirSessions, users[i%len(users)],
			topics.MemoirSnapshot{SessionID: &session, ThinkResponse: &topics.ThinkResponse{}}, session+"/snapshot/1")
		require.NoError(s.t, err)
		s.publish(out)
	}
}

// memory returns the row of a user.
func (s *stage) memory(user string) *memoirrow.State {
	s.mu.Lock()
	p := s.current
	s.mu.Unlock()
	row, err := p.Get(user)
	if err != nil {
		return nil
	}
	state, err := memoirrow.Table.Of(row)
	if err != nil {
		s.t.Error(err)
	}
	return state
}

// await waits until the memory of a user has words and no session of it waits.
func (s *stage) await(user string, words ...string) {
	s.t.Helper()
	var last *memoirrow.State
	require.Eventually(s.t, func() bool {
		last = s.memory(user)
		if last == nil || len(last.Pending) > 0 {
			return false
		}
		list := strings.Fields(last.Memory)
		for _, w := range words {
			if !slices.Contains(list, w) {
				return false
			}
		}
		return true
	}, waitLimit, 5*time.Millisecond, "%s: %v", user, words)
}

func sessionsOf(n, user, users int) (list []string) {
	for i := user; i < n; i += users {
		list = append(list, fmt.Sprint("s", i))
	}
	return list
}

func both(t *testing.T, test func(t *testing.T, s *stage)) {
	for _, g := range testbroker.Guarantees(t, processors.AtLeastOnce, processors.ExactlyOnce) {
		t.Run(string(g), func(t *testing.T) { test(t, newStage(t, g)) })
	}
}

// On the first start the group takes over what FlightDeck's updater has written, and works with that updater.
func TestFlightDeckUpdaterWithConcurrentSessionsLosesNothing(t *testing.T) {
	both(t, func(t *testing.T, s *stage) {
		const n = 12
		require.NoError(t, s.create())
		old := "before"
		s.publish(s.outbound("mira", &old, "", ""))
		s.run(memoir.Config{})
		s.await("mira", "before") // what comes before it is taken for its first answer
		s.end(0, n, "mira", "vera")
		s.work(false)
		s.await("mira", append(sessionsOf(n, 0, 2), "before")...)
		s.await("vera", sessionsOf(n, 1, 2)...)
		s.mu.Lock()
		defer s.mu.Unlock()
		require.Len(t, s.ids, n, "one snapshot for each session")
	})
}

// Readers that are not workers get a snapshot of every session while no worker runs, and no memory is lost afterwards.
func TestEverySessionHasASnapshotWithoutAWorker(t *testing.T) {
	for name, versions := range map[string]bool{"worker with versions": true, "FlightDeck's updater": false} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, s *stage) {
				const n = 12
				s.run(memoir.Config{Patience: 100 * time.Millisecond})
				var snapshots sync.Map
				s.follow(func(r processors.Inbound) { snapshots.Store(string(r.Header(topics.HeaderID)), true) })
				s.end(0, n, "mira", "vera")
				require.Eventually(t, func() bool {
					for i := range n {
						if _, ok := snapshots.Load(fmt.Sprintf("s%d/snapshot/1", i)); !ok {
							return false
						}
					}
					return true
				}, waitLimit, time.Millisecond)
				s.work(versions)
				s.await("mira", sessionsOf(n, 0, 2)...)
				s.await("vera", sessionsOf(n, 1, 2)...)
				s.mu.Lock()
				defer s.mu.Unlock()
				require.LessOrEqual(t, len(s.ids), 2*n)
			})
		})
	}
}

// create creates the topics, as FlightDeck's own processes have.
func (s *stage) create() error {
	return topics.EnsureCluster(context.Background(), s.brokers, kafka.Config(), s.topics, topics.WithPartitions(2))
}

func TestNoMemoryIsLostWhenTheGroupIsKilled(t *testing.T) {
	both(t, func(t *testing.T, s *stage) {
		const n = 20
		kill := s.run(memoir.Config{})
		s.work(true)
		s.end(0, n/2, "mira", "vera")
		require.Eventually(t, func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.ends) >= n/4
		}, waitLimit, time.Millisecond)
		kill()
		s.end(n/2, n, "mira", "vera")
		// After a crash at least once a worker can get a snapshot again under an ID that it knows. It answers it again.
		s.run(memoir.Config{})
		s.await("mira", sessionsOf(n, 0, 2)...)
		s.await("vera", sessionsOf(n, 1, 2)...)
		s.mu.Lock()
		defer s.mu.Unlock()
		require.Len(t, s.ends, n, "every session has a snapshot")
		if s.guarantee == processors.ExactlyOnce {
			for id, times := range s.ids {
				require.Equal(t, 1, times, id)
			}
		}
	})
}

func TestEditDuringAPassIsKept(t *testing.T) {
	both(t, func(t *testing.T, s *stage) {
		s.run(memoir.Config{})
		s.end(0, 1, "mira")
		require.Eventually(t, func() bool {
			m := s.memory("mira")
			return m != nil && len(m.Pending) == 1 && m.Pending[0].Sent
		}, waitLimit, time.Millisecond)
		edited := "edited"
		s.publish(s.outbound("mira", &edited, "edit-1", topics.MemoirEdit))
		s.work(true) // its first memory has no edit
		s.await("mira", "edited", "s0")
		s.mu.Lock()
		require.Equal(t, map[string]int{"s0/snapshot/1": 1, "s0/snapshot/2": 1}, s.ids)
		s.mu.Unlock()

		s.publish(s.outbound("mira", nil, "forget-1", ""))
		require.Eventually(t, func() bool { return s.memory("mira").GetMemory() == "" }, waitLimit, time.Millisecond)
		s.end(1, 2, "mira")
		s.await("mira", "s1")
		require.Equal(t, "s1", s.memory("mira").Memory)
	})
}
