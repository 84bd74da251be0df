package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/embedded"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/compact"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/processors/turn/turnhttp"
	workers "github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

const (
	waitLimit   = 60 * time.Second
	toolTimeout = 5 * time.Minute
	secret      = "a secret of at least thirty-two bytes"
)

// fixture runs both agents in this process, with dispatcher, models, and HTTP on loopback. The test advances the clock of the
// orchestrator's deadlines. Callbacks to the orchestrator go through the callbackProxy.
type fixture struct {
	t             *testing.T
	brokers       []string
	clock         *clock.Fake
	callbackProxy *callbackProxy
	chat          string // the orchestrator's door

	orchestrator, worker topics.Catalog
	begun                chan string            // tasks that the worker's model received
	release              map[string]chan string // the answers to tasks that wait

	mu   sync.Mutex
	seen map[string][]processors.Inbound // by topic
}

// quick sets short waits between attempts.
func quick(budget time.Duration) delivery.Config {
	return delivery.Config{
		DefaultService: delivery.Service{
			Budget: budget, Initial: 20 * time.Millisecond, Longest: 100 * time.Millisecond, Attempts: 1000,
		},
		Breaker: delivery.Breaker{Failures: 5, Open: 50 * time.Millisecond, Longest: 100 * time.Millisecond},
	}
}

func newFixture(t *testing.T, guarantee processors.Guarantee, deliveries delivery.Config, turns turn.Config) *fixture {
	t.Helper()
	broker, err := embedded.Start(embedded.Config{Partitions: 2})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, broker.Close()) })
	s := &fixture{
		t: t, brokers: broker.Addrs(), clock: clock.NewFake(time.Now()), seen: map[string][]processors.Inbound{},
		begun: make(chan string, 100), release: map[string]chan string{},
	}
	for _, task := range []string{"hang", "one", "two", "three"} {
		s.release[task] = make(chan string, 1)
	}
	s.orchestrator, err = topics.For(orchestrator, topics.WithDeliveries())
	require.NoError(t, err)
	s.worker, err = topics.For(worker, topics.WithDeliveries())
	require.NoError(t, err)

	group := func(of goka.Group, more ...processors.Option) []processors.Option {
		return append([]processors.Option{
			processors.WithGuarantee(guarantee), processors.WithInstance(string(of) + "-1"),
			processors.WithTick(10 * time.Millisecond),
		}, more...)
	}
	turns.ToolTimeout = toolTimeout
	asked := agent{
		name: orchestrator, secrets: []string{secret}, turn: turns,
		clock: s.clock, sink: sink.Config{Config: workers.Config{Clock: s.clock}},
		group: func(g goka.Group) []processors.Option { return group(g, processors.WithClock(s.clock)) },
	}
	s.callbackProxy = newCallbackProxy(t)
	s.chat = s.play(asked) + turnhttp.ChatPath
	s.callbackProxy.pass(strings.TrimSuffix(s.chat, turnhttp.ChatPath))
	services, err := sink.ParseServices(orchestrator + ":http://" + s.callbackProxy.address)
	require.NoError(t, err)
	chat := s.play(agent{
		name: worker, services: services, delivery: deliveries,
		group: func(g goka.Group) []processors.Option { return group(g) },
	}) + turnhttp.ChatPath

	s.start(dispatcher{
		agent: orchestrator, brokers: s.brokers, chat: chat, callback: orchestrator, secret: secret,
		tokenTTL: 24 * time.Hour, logger: zap.NewNop(), tools: tools.Config{Config: workers.Config{Clock: s.clock}},
	}.run)
	s.start(modelWorker{agent: orchestrator, brokers: s.brokers, model: think.Func(asking), compactor: compact.Func(listQuestions), logger: zap.NewNop()}.run)
	s.start(modelWorker{
		agent: worker, brokers: s.brokers, model: think.Func(s.working), compactor: compact.Func(listQuestions), logger: zap.NewNop(),
		think: think.Config{Config: workers.Config{Grace: time.Millisecond}},
	}.run)
	s.watch()
	return s
}

// play runs an agent on a free port and returns its address when it is ready.
func (s *fixture) play(a agent) string {
	s.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(s.t, err)
	a.brokers, a.logger = s.brokers, zap.NewNop()
	ready := make(chan struct{})
	s.start(func(ctx context.Context) error { return a.run(ctx, listener, func() { close(ready) }) })
	select {
	case <-ready:
	case <-time.After(waitLimit):
		require.Fail(s.t, "the agent is not ready")
	}
	return "http://" + listener.Addr().String()
}

// start runs a function until the test ends.
func (s *fixture) start(run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- run(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		require.NoError(s.t, <-ran)
	})
}

func (s *fixture) watch() {
	s.start(func(ctx context.Context) error {
		w, err := workers.New([]string{
			s.orchestrator.MessageOutput.Name(), s.orchestrator.ToolUseResult.Name(), s.orchestrator.DeadLetters(),
			s.orchestrator.EnrichedMessageInput.Name(), s.orchestrator.CompactionResult.Name(),
			s.worker.MessageInput.Name(), s.worker.MessageOutput.Name(), s.worker.DeliveryReceipts.Name(),
			s.worker.DeliveryDLQ.Name(),
		}, func(_ context.Context, r workers.Record) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.seen[r.Topic] = append(s.seen[r.Topic], r.Inbound)
			return nil
		}, workers.Config{Group: "watchers", Concurrency: 1, Ordered: true, Drop: true})
		if err != nil {
			return err
		}
		return w.Run(ctx, s.brokers)
	})
}

// records returns the records of a topic so far, of a session and of those it delegated to.
func (s *fixture) records(topic, session string) []processors.Inbound {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []processors.Inbound
	for _, r := range s.seen[topic] {
		if key := string(r.Key); key == session || strings.HasPrefix(key, session+subSession) {
			found = append(found, r)
		}
	}
	return found
}

// await waits for n records and returns all.
func (s *fixture) await(topic, session string, n int) []processors.Inbound {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return len(s.records(topic, session)) >= n }, waitLimit, 5*time.Millisecond,
		"%s of %s", topic, session)
	return s.records(topic, session)
}

// outputs waits for the orchestrator's answers in a session and requires exactly n.
func (s *fixture) outputs(session string, n int) []topics.Output {
	s.t.Helper()
	var outputs []topics.Output
	for _, r := range s.await(s.orchestrator.MessageOutput.Name(), session, n) {
		in := s.orchestrator.MessageOutput.Codec().Unmarshal(r.Value)
		require.NoError(s.t, in.Err)
		outputs = append(outputs, in.Value)
	}
	require.Len(s.t, outputs, n)
	return outputs
}

// ask posts a question to the orchestrator's door.
func (s *fixture) ask(session, content string) {
	s.t.Helper()
	body, err := json.Marshal(map[string]string{
		"session_id": session, "content": content, "user_id": "user of " + session,
	})
	require.NoError(s.t, err)
	answer, err := askWithoutCurl(s.t.Context(), s.chat, string(body))
	require.NoError(s.t, err, answer)
}

// asking is the orchestrator's model: the example's, except for questions that start with "delegate": these are delegated
// and their results are the answer.
func asking(ctx context.Context, s think.Step) (think.Reply, error) {
	var last string
	for _, m := range s.Messages {
		if *m.Role == "user" {
			last = topics.Text(m.Content)
		}
	}
	tasks, ok := strings.CutPrefix(last, "delegate: ")
	if !ok {
		return orchestrate(ctx, s)
	}
	if *s.Input().Role == "tool" {
		return think.Say(string(s.Input().Content)), nil
	}
	var r think.Reply
	for i, task := range strings.Split(tasks, " | ") {
		input, _ := jsontext.AppendQuote([]byte(`{"task":`), task)
		r.Blocks = append(r.Blocks, think.Block{Call: &think.Call{
			ID: callID(s.Key, i), Name: delegateTask, Input: append(input, '}'),
		}})
	}
	return r, nil
}

// working is the worker's model: the example's, except for tasks that name a behavior.
func (s *fixture) working(ctx context.Context, step think.Step) (think.Reply, error) {
	task := topics.Text(step.Input().Content)
	s.begun <- task
	if text, ok := strings.CutPrefix(task, "say "); ok {
		return think.Say(text), nil
	}
	if waits, ok := s.release[task]; ok {
		select {
		case text := <-waits:
			return think.Say(text), nil
		case <-ctx.Done():
			return think.Reply{}, ctx.Err()
		}
	}
	return work(ctx, step)
}

// results returns the tool results of the last step from an output of asking.
func results(t *testing.T, out topics.Output) []delegated {
	t.Helper()
	require.Nil(t, out.Error)
	var all []delegated
	require.NoError(t, json.Unmarshal([]byte(out.Content), &all), out.Content)
	return all
}

type delegated struct {
	ToolUseID string         `json:"tool_use_id"`
	Name      string         `json:"name"`
	Result    jsontext.Value `json:"result"`
	Status    string         `json:"status"`
}

// both runs a test under both guarantees.
func both(t *testing.T, test func(t *testing.T, guarantee processors.Guarantee)) {
	for _, g := range testbroker.Guarantees(t, processors.AtLeastOnce, processors.ExactlyOnce) {
		t.Run(string(g), func(t *testing.T) { test(t, g) })
	}
}

// send repeats a callback.
func (s *fixture) send(c callback, withKey bool) int {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost,
		strings.TrimSuffix(s.chat, turnhttp.ChatPath)+turnhttp.ToolResponsePath, strings.NewReader(c.body))
	require.NoError(s.t, err)
	r.Header = c.header.Clone()
	if !withKey {
		r.Header.Del("Idempotency-Key")
	}
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	response, err := client.Do(r)
	require.NoError(s.t, err)
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(s.t, err)
	require.NoError(s.t, response.Body.Close())
	return response.StatusCode
}
