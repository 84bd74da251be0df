package host_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/crew"
	"github.com/turntable-streams/turntable/processors/crew/crewtest"
	"github.com/turntable-streams/turntable/processors/crew/host"
	"github.com/turntable-streams/turntable/topics"
)

const (
	brokerWait = 3 * time.Minute
	theAgent   = "11112222-3333-4444-5555-666677778888"
)

// stage is a broker with the groups of agents and of repositories. The test is the crew.
type stage struct {
	t       *testing.T
	brokers []string
	topics  topics.Catalog
	to      *processors.KafkaPublisher
	dir     string
	argv    []string
	n       int64
	// stopGroups stops the first process of the groups.
	stopGroups func()

	mu     sync.Mutex
	inputs []topics.CrewInput // of the agent
}

func newStage(t *testing.T, g processors.Guarantee) *stage {
	t.Helper()
	return newStageOf(t, g, crewtest.Script{
		Load: true, Store: t.TempDir(), Rules: []crewtest.Rule{{Steps: []crewtest.Step{{Text: "{{prompt}}"}}}},
	})
}

// newStageOf has agents that do what a script says.
func newStageOf(t *testing.T, g processors.Guarantee, script crewtest.Script) *stage {
	t.Helper()
	s := &stage{t: t, brokers: testbroker.Start(t), dir: t.TempDir()}
	var err error
	s.argv, err = crewtest.Command(t.TempDir(), script)
	require.NoError(t, err)
	s.topics, err = topics.For(testbroker.Agent(), topics.WithCrews(), topics.WithGates())
	require.NoError(t, err)
	s.to, err = processors.NewPublisher(s.brokers)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.to.Close()) })
	s.stopGroups = s.groups("one", g)
	f, err := processors.NewTableFollower(s.brokers, []string{s.topics.CrewAgentInputs.Name()}, func(r processors.Inbound) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.inputs = append(s.inputs, s.topics.CrewAgentInputs.Codec().Unmarshal(r.Value).Value)
	})
	require.NoError(t, err)
	s.background(func(ctx context.Context) error { return f.Run(ctx) })
	return s
}

// background runs something until the test ends, or until stop is called, which returns its error.
func (s *stage) background(run func(context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ran
	})
	s.t.Cleanup(func() { _ = stop() })
	return stop
}

// groups runs a process with the groups until the test ends, or until stop is called.
func (s *stage) groups(instance string, g processors.Guarantee) (stop func()) {
	s.t.Helper()
	graphs, err := crew.Graphs(s.topics.Agent, crew.Config{})
	require.NoError(s.t, err)
	var stops []func() error
	for _, graph := range graphs {
		stops = append(stops, s.process(graph, instance, g))
	}
	return func() {
		for _, stop := range stops {
			require.NoError(s.t, stop())
		}
	}
}

func (s *stage) process(graph *goka.GroupGraph, instance string, g processors.Guarantee) (stop func() error) {
	s.t.Helper()
	p, err := processors.New(s.brokers, graph, processors.WithTopics(s.topics), processors.WithPartitions(2),
		processors.WithInstance(instance), processors.WithGuarantee(g), processors.WithTick(10*time.Millisecond))
	require.NoError(s.t, err)
	stop = s.background(p.Run)
	require.Eventually(s.t, func() bool { return p.Health().State == processors.Running }, brokerWait, 5*time.Millisecond)
	return stop
}

// spawn spawns the agent, and returns when its session is there.
func (s *stage) spawn() {
	s.t.Helper()
	s.tell(crewbody.Spawn{Member: crewbody.Member{AgentID: theAgent, CrewID: "c1", RoleID: "dev", RoleName: "Dev", Host: "h1", Cwd: s.dir}})
	heard[crewbody.SessionReady](s, 1)
}

// count is how many records of a kind the agent got.
func (s *stage) count(kind crewbody.Body) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, in := range s.inputs {
		if in.Kind == kind.Kind() {
			n++
		}
	}
	return n
}

// host runs a host until stop is called, and returns when it does actions.
func (s *stage) host() (h *host.Host, stop func() error) {
	s.t.Helper()
	h, err := host.New(host.Config{
		Agent: s.topics.Agent, Name: "h1", Brokers: s.brokers, Commands: map[string][]string{"": s.argv}, Dirs: []string{s.dir},
		Env: append(host.DefaultEnv(), "GORACE"),
	})
	require.NoError(s.t, err)
	stop = s.background(h.Run)
	select {
	case <-h.Ready():
	case <-time.After(brokerWait):
		require.FailNow(s.t, "the host is not ready")
	}
	return h, stop
}

// tell writes an input of the crew.
func (s *stage) tell(body crewbody.Body) {
	s.t.Helper()
	s.n++
	in := topics.CrewInput{
		InputID: fmt.Sprint("crew/c1/", s.n), Kind: body.Kind(), From: "crew/c1", Number: s.n, Body: crewbody.Encode(body),
	}
	out, err := processors.OutboundOf(s.topics.CrewAgentInputs, theAgent, in, in.InputID)
	require.NoError(s.t, err)
	require.NoError(s.t, s.to.Publish(s.t.Context(), out))
}

// heard waits for the nth record of a kind of the host, and returns it.
func heard[T crewbody.Body](s *stage, n int) (body T) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		found := 0
		for _, in := range s.inputs {
			if in.Kind != body.Kind() {
				continue
			}
			if found++; found == n {
				b, err := crewbody.Decode[T](in.Body)
				body = b
				return err == nil
			}
		}
		return false
	}, brokerWait, 10*time.Millisecond, "%T", body)
	return body
}

func TestAgentGoesOnAfterItsHostWasStartedAnew(t *testing.T) {
	for _, g := range testbroker.Guarantees(t, processors.AtLeastOnce, processors.ExactlyOnce) {
		t.Run(string(g), func(t *testing.T) {
			s := newStage(t, g)
			// The agent is spawned while there is no host.
			s.tell(crewbody.Spawn{
				Member: crewbody.Member{AgentID: theAgent, CrewID: "c1", RoleID: "dev", RoleName: "Dev", Host: "h1", Cwd: s.dir},
				Prompt: "first",
			})
			_, stop := s.host()
			first := heard[crewbody.SessionReady](s, 1)
			require.False(t, first.Resumed)
			require.Equal(t, "end_turn", heard[crewbody.TurnEnded](s, 1).StopReason)
			require.NoError(t, stop())
			require.True(t, heard[crewbody.Exited](s, 1).Stopped)

			s.host()
			again := heard[crewbody.SessionReady](s, 2)
			require.True(t, again.Resumed)
			require.Equal(t, first.SessionID, again.SessionID)
			require.NotEqual(t, first.Run, again.Run)
			s.tell(crewbody.Prompt{Text: "second"})
			require.Equal(t, again.Run, heard[crewbody.TurnEnded](s, 2).Run)
			s.tell(crewbody.Terminate{})
			require.Equal(t, crewbody.Exited{Run: again.Run}, heard[crewbody.Exited](s, 2))
		})
	}
}

func TestHostEndsWhenAnotherOneOfItsNameStarts(t *testing.T) {
	s := newStage(t, processors.AtLeastOnce)
	first, stop := s.host()
	s.tell(crewbody.Spawn{Member: crewbody.Member{AgentID: theAgent, CrewID: "c1", RoleID: "dev", RoleName: "Dev", Host: "h1", Cwd: s.dir}})
	heard[crewbody.SessionReady](s, 1)
	s.host()
	heard[crewbody.SessionReady](s, 2) // the row has a process of the later host
	require.Eventually(t, func() bool { return first.Agents() == 0 }, brokerWait, 10*time.Millisecond)
	require.ErrorIs(t, stop(), host.ErrReplaced)
}
