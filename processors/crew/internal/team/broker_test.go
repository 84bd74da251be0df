package team_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/crew/internal/team"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

const (
	waitLimit = 3 * time.Minute
	crewID    = "c1"
	leadID    = "1ead0000-0000-0000-0000-000000000001"
)

// stage is a broker with the group. The test is the door and the agents.
type stage struct {
	t         *testing.T
	guarantee processors.Guarantee
	brokers   []string
	topics    topics.Catalog
	to        *processors.KafkaPublisher
	number    int64

	mu      sync.Mutex
	current *processors.Processor
	events  []topics.CrewEvent
	told    map[string][]topics.CrewInput // by agent
	known   map[string]bool               // turntable.id of all of them
}

func newStage(t *testing.T, guarantee processors.Guarantee) *stage {
	t.Helper()
	s := &stage{
		t: t, guarantee: guarantee, brokers: testbroker.Start(t), told: map[string][]topics.CrewInput{}, known: map[string]bool{},
	}
	var err error
	s.topics, err = topics.For(testbroker.Agent(), topics.WithCrews(), topics.WithGates())
	require.NoError(t, err)
	s.to, err = processors.NewPublisher(s.brokers)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.to.Close()) })
	return s
}

// run starts the group and waits until its state is Running.
func (s *stage) run() (kill func()) {
	s.t.Helper()
	group, err := team.Group(s.topics.Agent, team.Config{})
	require.NoError(s.t, err)
	p, err := processors.New(s.brokers, group.Graph(), processors.WithTopics(s.topics), processors.WithPartitions(2),
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
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = p
	return func() {
		p.Kill()
		stop()
	}
}

// watch reads what the group has committed until the test ends.
func (s *stage) watch() {
	s.t.Helper()
	reader, err := kgo.NewClient(kgo.SeedBrokers(s.brokers...), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeTopics(s.topics.CrewEvents.Name(), s.topics.CrewAgentInputs.Name()),
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
		if h.Key == topics.HeaderID {
			id := r.Topic + " " + string(h.Value)
			if s.known[id] {
				return
			}
			s.known[id] = true
		}
	}
	if r.Topic == s.topics.CrewEvents.Name() {
		s.events = append(s.events, s.topics.CrewEvents.Codec().Unmarshal(r.Value).Value)
		return
	}
	s.told[string(r.Key)] = append(s.told[string(r.Key)], s.topics.CrewInputs.Codec().Unmarshal(r.Value).Value)
}

// send writes an input of the crew: of an agent, or of the door if from is empty.
func (s *stage) send(from string, body crewbody.Body) {
	s.t.Helper()
	s.number++
	in := topics.CrewInput{InputID: fmt.Sprint("in-", s.number), Kind: body.Kind(), Body: crewbody.Encode(body)}
	if from != "" {
		in.From, in.Number = "agent/"+from, s.number
	}
	out, err := processors.OutboundOf(s.topics.CrewInputs, crewID, in, in.InputID)
	require.NoError(s.t, err)
	require.NoError(s.t, s.to.Publish(s.t.Context(), out))
}

func (s *stage) command(from, name string, payload map[string]any) {
	s.t.Helper()
	raw, err := json.Marshal(payload)
	require.NoError(s.t, err)
	s.send(from, crewbody.Command{Member: crewbody.Member{AgentID: from, CrewID: crewID}, SessionID: "s", Name: name, Payload: raw})
}

// mail waits for the n-th input of a kind that an agent gets.
func mail[T crewbody.Body](s *stage, agentID string, n int) (body T) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		seen := 0
		for _, in := range s.told[agentID] {
			if in.Kind != body.Kind() {
				continue
			}
			if seen++; seen == n {
				var err error
				body, err = crewbody.Decode[T](in.Body)
				require.NoError(s.t, err)
				return true
			}
		}
		return false
	}, waitLimit, 5*time.Millisecond, "%s %d", body.Kind(), n)
	return body
}

// event waits for the n-th event of a type and returns its fields.
func (s *stage) event(kind string, n int) (fields map[string]any) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		seen := 0
		for _, e := range s.events {
			if e.Type != kind {
				continue
			}
			if seen++; seen == n {
				require.NoError(s.t, json.Unmarshal(e.Fields, &fields))
				return true
			}
		}
		return false
	}, waitLimit, 5*time.Millisecond, "%s %d", kind, n)
	return fields
}

// A lead creates an agent with a task, the agent finishes, and the lead gets one report, whenever the process is killed.
func TestDelegationIsReportedAcrossKills(t *testing.T) {
	for _, guarantee := range testbroker.Guarantees(t, processors.AtLeastOnce, processors.ExactlyOnce) {
		t.Run(string(guarantee), func(t *testing.T) {
			s := newStage(t, guarantee)
			kill := s.run()
			s.watch()
			s.send("", crewbody.Configure{ProjectID: "p1", Host: "mill", Cwd: "/src", Repository: "boats"})
			s.send("", crewbody.SpawnAsked{AgentID: leadID, RoleID: "lead", Task: "Build a boat"})
			require.Contains(t, mail[crewbody.Spawn](s, leadID, 1).Prompt, "Your task: Build a boat")
			s.send(leadID, crewbody.AgentChanged{AgentID: leadID, Status: view.Running, SessionID: "s"})
			s.command(leadID, "CREATE_AGENT", map[string]any{"role": "developer", "task": "Lay the keel"})
			delegated := s.event("agent:delegated", 1)
			dev := delegated["childId"].(string)
			require.Equal(t, leadID, mail[crewbody.Spawn](s, dev, 1).ParentID)
			s.event("agent:sub_spawned", 1)
			kill()

			s.send(dev, crewbody.AgentChanged{AgentID: dev, Status: view.Running, SessionID: "s2"})
			s.command(dev, "COMPLETE_TASK", map[string]any{"summary": "The keel lies"})
			s.send(dev, crewbody.AgentIdle{AgentID: dev, StopReason: "end_turn", Output: "The keel lies"})
			kill = s.run()
			require.Contains(t, mail[crewbody.Prompt](s, leadID, 1).Text, "The keel lies")
			require.Equal(t, "completed", s.event("agent:completion_reported", 1)["status"])
			kill()
			s.run()

			s.command(leadID, "SET_TIMER", map[string]any{"label": "tide", "delay": 5, "message": "Launch"})
			require.Equal(t, `[Timer "tide"]: Launch`, mail[crewbody.Prompt](s, leadID, 2).Text)
			s.send("", crewbody.TerminateAsked{AgentID: leadID})
			mail[crewbody.Terminate](s, dev, 1)
			mail[crewbody.Terminate](s, leadID, 1)
			require.Equal(t, "terminated", s.event("agent:completion_reported", 2)["status"])
			s.event("activity", 4)
			s.mu.Lock()
			defer s.mu.Unlock()
			for i, e := range s.events {
				require.EqualValues(t, i+1, e.Seq, "no gap and no repeat")
			}
			row, err := s.current.Get(crewID)
			require.NoError(t, err)
			state, err := team.Table.Of(row)
			require.NoError(t, err)
			require.Equal(t, "completed", team.Delegations(state)[0].Status)
			require.Equal(t, "/src", state.Settings.Cwd)
			for _, m := range state.Roster.Members {
				require.Equal(t, view.Terminated, m.Status)
			}
		})
	}
}
