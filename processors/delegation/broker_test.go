package delegation_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delegation"
	"github.com/turntable-streams/turntable/topics"
)

const waitLimit = 3 * time.Minute

// stage is a broker with two agents. The test is the turns of both.
type stage struct {
	t               *testing.T
	guarantee       processors.Guarantee
	brokers         []string
	front, research topics.Catalog
	to              *processors.KafkaPublisher

	mu        sync.Mutex
	tasks     map[string]int      // how often the message of a task was written, by its ID
	callbacks map[string][]string // the messages that announce results, by their IDs: "thread: text"
}

func newStage(t *testing.T, guarantee processors.Guarantee) *stage {
	t.Helper()
	s := &stage{t: t, guarantee: guarantee, brokers: testbroker.Start(t), tasks: map[string]int{}, callbacks: map[string][]string{}}
	var err error
	s.front, err = topics.For(testbroker.Agent(), topics.WithChannels())
	require.NoError(t, err)
	s.research, err = topics.For(testbroker.Agent(), topics.WithChannels())
	require.NoError(t, err)
	s.to, err = processors.NewPublisher(s.brokers)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.to.Close()) })
	return s
}

// processor returns the group of an agent.
func (s *stage) processor(own, other topics.Catalog) *processors.Processor {
	s.t.Helper()
	graph, err := delegation.Graph(own.Agent, delegation.Config{Agents: []string{other.Agent}})
	require.NoError(s.t, err)
	p, err := processors.New(s.brokers, graph, processors.WithTopics(own), processors.WithPartitions(2),
		processors.WithInstance(own.Agent), processors.WithGuarantee(s.guarantee), processors.WithTick(10*time.Millisecond))
	require.NoError(s.t, err)
	return p
}

// run starts the group of an agent and waits until its state is Running.
func (s *stage) run(own, other topics.Catalog) (kill func()) {
	s.t.Helper()
	p := s.processor(own, other)
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

// turns runs the turns of both agents: each message is answered once, with its metadata's route.
func (s *stage) turns() {
	s.t.Helper()
	for _, c := range []topics.Catalog{s.front, s.research} {
		f, err := processors.NewTableFollower(s.brokers, []string{c.MessageInput.Name()}, func(r processors.Inbound) {
			m := c.MessageInput.Codec().Unmarshal(r.Value).Value
			id := string(r.Header(topics.HeaderID))
			if !s.saw(c, id, m) {
				return // a repeat
			}
			request, _ := topics.Lookup(m.Metadata, "request_id")
			o := topics.Output{
				SessionID: m.SessionID, Content: "about " + topics.Text(m.Content), SourceAgent: c.Agent, RequestID: topics.TextOf(request),
			}
			if task, ok := topics.Lookup(m.Metadata, topics.MetaTask); ok {
				o.ReplyTo = topics.DelegationRoute(task)
			}
			s.publish(publishOf(s.t, c.MessageOutput, string(r.Key), o, "output-of/"+id))
		})
		require.NoError(s.t, err)
		s.start(f.Run)
	}
}

// saw keeps a message and reports whether it is new.
func (s *stage) saw(c topics.Catalog, id string, m topics.Message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Agent == s.research.Agent {
		s.tasks[id]++
		return s.tasks[id] == 1
	}
	raw, _ := topics.Lookup(m.Metadata, topics.MetaOrigin)
	origin, err := topics.DecodeOrigin(raw)
	if err != nil {
		s.t.Errorf("message %s: %v", id, err)
	}
	_, text, _ := strings.Cut(topics.Text(m.Content), "\n")
	s.callbacks[id] = append(s.callbacks[id], origin.Thread+": "+text)
	return len(s.callbacks[id]) == 1
}

func publishOf[T any](t *testing.T, topic topics.Topic[T], key string, v T, id string) processors.Outbound {
	out, err := processors.OutboundOf(topic, key, v, id)
	if err != nil {
		t.Error(err)
	}
	return out
}

func (s *stage) publish(r processors.Outbound) {
	if err := s.to.Publish(context.Background(), r); err != nil {
		s.t.Error(err)
	}
}

// delegate writes calls of five sessions.
func (s *stage) delegate(from, to int) {
	s.t.Helper()
	for i := from; i < to; i++ {
		session, use, name := fmt.Sprint("s", i%5), fmt.Sprint("call_", i/5), delegation.SendTool
		s.publish(publishOf(s.t, s.front.ToolUse, session, topics.ToolUseItem{
			ToolUseID: &use, Name: &name, SessionID: &session, TotalTools: 1,
			Input:  topics.Raw(fmt.Sprintf(`{"agent_id":%q,"message":"task %d"}`, s.research.Agent, i)),
			Origin: topics.EncodeOrigin(topics.Origin{Channel: "slack", Account: "main", Recipient: "C1", Thread: fmt.Sprint("t", i)}),
		}, fmt.Sprint("turn/", i)))
	}
}

func (s *stage) announced() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.callbacks)
}

// The caller's group is killed while results come back.
func TestResultsAreAnnouncedOnceWhenTheGroupIsKilled(t *testing.T) {
	for _, g := range testbroker.Guarantees(t, processors.AtLeastOnce, processors.ExactlyOnce) {
		t.Run(string(g), func(t *testing.T) {
			const calls = 40
			s := newStage(t, g)
			s.run(s.research, s.front)
			kill := s.run(s.front, s.research)
			s.turns()
			s.delegate(0, calls/2)
			require.Eventually(t, func() bool { return s.announced() >= calls/8 }, waitLimit, time.Millisecond)
			kill()
			s.delegate(calls/2, calls)
			s.run(s.front, s.research)
			require.Eventually(t, func() bool { return s.announced() == calls }, waitLimit, 10*time.Millisecond)
			s.mu.Lock()
			defer s.mu.Unlock()
			seen := map[string]bool{}
			for id, list := range s.callbacks {
				for _, text := range list {
					require.Equal(t, list[0], text, id)
				}
				if g == processors.ExactlyOnce {
					require.Len(t, list, 1, id)
				}
				seen[list[0]] = true
			}
			for i := range calls {
				require.True(t, seen[fmt.Sprintf("t%d: about task %d", i, i)], "%d, in its thread", i)
			}
			require.Len(t, s.tasks, calls)
		})
	}
}

// The processes of two agents come up in any order, on an empty cluster too. A task for an agent whose topics do not exist yet
// waits for them, with all that comes after it, and the health names the topic.
func TestTaskWaitsForTheTopicsOfItsTarget(t *testing.T) {
	const calls = 5
	s := newStage(t, processors.AtLeastOnce)
	front := s.processor(s.front, s.research)
	s.start(front.Run)
	require.Eventually(t, func() bool { return front.Health().State == processors.Running }, waitLimit, 5*time.Millisecond)
	s.delegate(0, calls)
	require.Eventually(t, func() bool {
		err := front.Health().Err
		return err != nil && strings.Contains(err.Error(), s.research.MessageInput.Name())
	}, waitLimit, 5*time.Millisecond)
	s.run(s.research, s.front)
	s.turns()
	require.Eventually(t, func() bool { return s.announced() == calls }, waitLimit, 10*time.Millisecond)
}
