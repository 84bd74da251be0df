package agent_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/crew/internal/agent"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

const (
	waitLimit = 3 * time.Minute
	theAgent  = "11112222-3333-4444-5555-666677778888"
)

// stage is a broker with the group. The test is the crew and the host.
type stage struct {
	t         *testing.T
	guarantee processors.Guarantee
	brokers   []string
	topics    topics.Catalog
	to        *processors.KafkaPublisher
	number    int64

	mu      sync.Mutex
	current *processors.Processor
	actions []topics.CrewAction // without repeats
	events  []topics.CrewEvent
	told    []topics.CrewInput
	known   map[string]bool // turntable.id of all of them
	repeats int
}

func newStage(t *testing.T, guarantee processors.Guarantee) *stage {
	t.Helper()
	s := &stage{t: t, guarantee: guarantee, brokers: testbroker.Start(t), known: map[string]bool{}}
	var err error
	s.topics, err = topics.For(testbroker.Agent(), topics.WithCrews(), topics.WithGates())
	require.NoError(t, err)
	s.to, err = processors.NewPublisher(s.brokers)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.to.Close()) })
	return s
}

func both(t *testing.T, test func(t *testing.T, s *stage)) {
	for _, g := range testbroker.Guarantees(t, processors.AtLeastOnce, processors.ExactlyOnce) {
		t.Run(string(g), func(t *testing.T) { test(t, newStage(t, g)) })
	}
}

// run starts the group and waits until its state is Running.
func (s *stage) run(config agent.Config) (kill func()) {
	s.t.Helper()
	group, err := agent.Group(s.topics.Agent, config)
	require.NoError(s.t, err)
	p, kill := s.start(group.Graph())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = p
	return kill
}

// start starts a group and waits until its state is Running.
func (s *stage) start(graph *goka.GroupGraph) (p *processors.Processor, kill func()) {
	s.t.Helper()
	p, err := processors.New(s.brokers, graph, processors.WithTopics(s.topics), processors.WithPartitions(2),
		processors.WithInstance("one"), processors.WithGuarantee(s.guarantee), processors.WithTick(10*time.Millisecond))
	require.NoError(s.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- p.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ran; !errors.Is(err, processors.ErrKilled) {
			require.NoError(s.t, err)
		}
	})
	s.t.Cleanup(stop)
	require.Eventually(s.t, func() bool { return p.Health().State == processors.Running }, waitLimit, 5*time.Millisecond)
	return p, func() {
		p.Kill()
		stop()
	}
}

// watch reads what the group has committed until the test ends.
func (s *stage) watch() {
	s.t.Helper()
	c := s.topics
	reader, err := kgo.NewClient(kgo.SeedBrokers(s.brokers...), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeTopics(c.CrewActions.Name(), c.CrewEvents.Name(), c.CrewInputs.Name(), c.CrewRepositoryInputs.Name()),
		kgo.FetchMaxWait(20*time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(s.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			fetches := reader.PollFetches(ctx)
			s.mu.Lock()
			fetches.EachRecord(s.read)
			s.mu.Unlock()
		}
	}()
	s.t.Cleanup(func() {
		cancel()
		<-done
		reader.Close()
	})
}

func (s *stage) read(r *kgo.Record) {
	for _, h := range r.Headers {
		if h.Key != topics.HeaderID {
			continue
		}
		if id := r.Topic + " " + string(h.Value); s.known[id] {
			s.repeats++
			return
		} else {
			s.known[id] = true
		}
	}
	switch r.Topic {
	case s.topics.CrewActions.Name():
		s.actions = append(s.actions, s.topics.CrewActions.Codec().Unmarshal(r.Value).Value)
	case s.topics.CrewEvents.Name():
		s.events = append(s.events, s.topics.CrewEvents.Codec().Unmarshal(r.Value).Value)
	default:
		s.told = append(s.told, s.topics.CrewInputs.Codec().Unmarshal(r.Value).Value)
	}
}

// send writes an input of the agent.
func (s *stage) send(from string, number int64, body crewbody.Body) {
	s.t.Helper()
	s.number++
	in := topics.CrewInput{
		InputID: fmt.Sprintf("%s>%d", from, s.number), Kind: body.Kind(), From: from, Number: number, Body: crewbody.Encode(body),
	}
	out, err := processors.OutboundOf(s.topics.CrewAgentInputs, theAgent, in, in.InputID)
	require.NoError(s.t, err)
	require.NoError(s.t, s.to.Publish(s.t.Context(), out))
}

func (s *stage) crew(body crewbody.Body) { s.t.Helper(); s.send("crew/c1", s.number+1, body) }

func (s *stage) host(body crewbody.Body) {
	s.t.Helper()
	s.send("host/north", 7_000_000_000+s.number, body)
}

// action waits for the n-th action of a kind.
func action[T crewbody.Body](s *stage, n int) (id string, body T) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		seen := 0
		for _, a := range s.actions {
			if a.Kind != body.Kind() {
				continue
			}
			if seen++; seen == n {
				var err error
				body, err = crewbody.Decode[T](a.Body)
				require.NoError(s.t, err)
				id = a.ActionID
				return true
			}
		}
		return false
	}, waitLimit, 5*time.Millisecond, "%s %d", body.Kind(), n)
	return id, body
}

// await waits for the last of a list of types of events and returns the types of all.
func (s *stage) await(last string, count int) (types []string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		types = nil
		n := 0
		for _, e := range s.events {
			types = append(types, e.Type)
			if e.Type == last {
				n++
			}
		}
		return n >= count
	}, waitLimit, 5*time.Millisecond, last)
	return types
}

// The whole life of an agent: start, session, prompt, updates, a crash, a restart, an end. The processor is killed between.
func TestLifeOfAnAgent(t *testing.T) {
	both(t, func(t *testing.T, s *stage) {
		kill := s.run(agent.Config{RestartDelay: 50 * time.Millisecond})
		s.watch()
		s.crew(crewbody.Spawn{
			Member: crewbody.Member{AgentID: theAgent, CrewID: "c1", ProjectID: "p1", RoleID: "developer", Host: "north", Repository: "shop"},
			Prompt: "You are a developer.",
		})
		run, _ := action[crewbody.Start](s, 1)
		s.host(crewbody.Started{Run: run, Capabilities: topics.Raw(`{"loadSession":true}`)})
		s.host(crewbody.SessionReady{Run: run, SessionID: "s1"})
		promptID, send := action[crewbody.Send](s, 1)
		require.Equal(t, promptID, send.PromptID)
		require.JSONEq(t, `[{"type":"text","text":"You are a developer."}]`, string(send.Blocks))
		kill()

		s.crew(crewbody.Prompt{Text: "next", FromID: "b"})
		s.host(crewbody.Updates{Run: run, SessionID: "s1", Updates: []topics.Raw{
			topics.Raw(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi ⟦⟦ BROADCAST {\"content\":\"x\"} ⟧⟧"}}`),
		}})
		s.host(crewbody.TurnEnded{Run: run, PromptID: promptID, StopReason: "end_turn"})
		s.run(agent.Config{RestartDelay: 50 * time.Millisecond})
		_, send = action[crewbody.Send](s, 2)
		require.JSONEq(t, `[{"type":"text","text":"next"}]`, string(send.Blocks))

		s.host(crewbody.Exited{Run: run, Code: 7})
		require.Eventually(t, func() bool { return s.toldOf("restart_due") == 1 }, waitLimit, 5*time.Millisecond)
		s.crew(crewbody.Restart{})
		second, start := action[crewbody.Start](s, 2)
		require.NotEqual(t, run, second)
		require.Equal(t, "s1", start.SessionID)
		s.host(crewbody.Started{Run: second, Capabilities: topics.Raw(`{"loadSession":true}`)})
		s.host(crewbody.SessionReady{Run: second, SessionID: "s1", Resumed: true})
		s.await("agent:status", 5) // of the idle agent, after a while
		s.crew(crewbody.Terminate{})
		_, stop := action[crewbody.Stop](s, 1)
		require.Equal(t, second, stop.Run)
		s.host(crewbody.Exited{Run: second})

		require.Equal(t, []string{
			"agent:spawned",
			"agent:session_ready", "agent:response_start", "agent:status",
			"agent:text",
			"agent:response_end", "agent:response_start",
			"agent:response_end", "agent:exit", "agent:crashed", "agent:status",
			"agent:auto_restarted", "agent:status",
			"agent:status", // resuming is running
			"agent:session_ready", "agent:status",
			"agent:status",
			"agent:exit", "agent:terminated",
		}, s.await("agent:terminated", 1))
		s.mu.Lock()
		defer s.mu.Unlock()
		for i, e := range s.events {
			require.EqualValues(t, i+1, e.Seq)
			require.Equal(t, "agent/"+theAgent, e.Subject)
			require.Equal(t, "c1", e.CrewID)
			require.Equal(t, "p1", e.ProjectID)
		}
		commands := 0
		for _, in := range s.told {
			if in.Kind == "command" {
				commands++
				require.Equal(t, "agent/"+theAgent+"/s1/3", in.InputID)
			}
		}
		require.Equal(t, 1, commands)
		if s.guarantee == processors.ExactlyOnce {
			require.Zero(t, s.repeats)
		}
		row, err := s.current.Get(theAgent)
		require.NoError(t, err)
		state, err := agent.Table.Of(row)
		require.NoError(t, err)
		require.Equal(t, view.Terminated, agent.View(theAgent, state).Status)
	})
}

// toldOf returns how many inputs of a kind the crew and the repository got.
func (s *stage) toldOf(kind string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, in := range s.told {
		if in.Kind == kind {
			n++
		}
	}
	return n
}
