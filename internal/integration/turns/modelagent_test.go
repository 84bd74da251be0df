package turns

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/internal/testing/wiretest"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

const (
	partitions = 6
	// tick is how often the turn checks deadlines.
	tick = 50 * time.Millisecond
)

// agent is an agent whose turns run in the process of the test. Its users send one message per session; the test chooses
// where its model runs.
type agent struct {
	testing.TB
	name    string
	brokers []string
	user    *wiretest.Driver
	reader  *kgo.Client

	mu        sync.Mutex
	sent      map[string]time.Time // by session
	responses map[string]time.Time // when the test has read the session's first response
	outputs   map[string]time.Time // when the test has read the session's output
}

// newAgent starts the turns of a new agent. They end with the test.
func newAgent(t testing.TB, guarantee processors.Guarantee, config turn.Config) *agent {
	t.Helper()
	a := &agent{
		TB: t, name: testbroker.Agent(), brokers: testbroker.StartWithLock(t, modelLock),
		sent: map[string]time.Time{}, responses: map[string]time.Time{}, outputs: map[string]time.Time{},
	}
	a.createTopics()
	catalog, err := topics.For(a.name)
	require.NoError(t, err)
	graph, err := turn.Graph(a.name, config)
	require.NoError(t, err)
	p, err := processors.New(a.brokers, graph, processors.WithTopics(catalog), processors.WithStorage(processors.Memory()),
		processors.WithGuarantee(guarantee), processors.WithInstance("turns"), processors.WithTick(tick),
		processors.WithLogger(zaptest.NewLogger(t, zaptest.Level(zap.ErrorLevel))))
	require.NoError(t, err)
	a.background(p.Run)
	require.Eventually(t, func() bool { return p.Health().State == processors.Running }, wait, 10*time.Millisecond)

	a.user, err = wiretest.NewDriver(t.Context(), a.brokers, a.name)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.user.Close()) })
	a.reader, err = kgo.NewClient(kgo.SeedBrokers(a.brokers...), kgo.FetchMaxWait(100*time.Millisecond),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.ConsumeTopics(catalog.ThinkRequestResponse.Name(), catalog.MessageOutput.Name()))
	require.NoError(t, err)
	t.Cleanup(a.reader.Close)
	a.background(func(ctx context.Context) error {
		for ctx.Err() == nil {
			fetches := a.reader.PollFetches(ctx)
			now := time.Now()
			fetches.EachRecord(func(r *kgo.Record) {
				seen := a.outputs
				if r.Topic == catalog.ThinkRequestResponse.Name() {
					seen = a.responses
				}
				a.mu.Lock()
				defer a.mu.Unlock()
				if _, again := seen[string(r.Key)]; !again {
					seen[string(r.Key)] = now
				}
			})
		}
		return nil
	})
	return a
}

func (a *agent) createTopics() {
	a.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(a.brokers...))
	require.NoError(a, err)
	defer client.Close()
	admin := kadm.NewClient(client)
	require.NoError(a, wiretest.CreateTopics(a.Context(), a.brokers, a.name, partitions))
	names := wiretest.NamesOf(a.name)
	require.Eventually(a, func() bool {
		have, err := admin.ListTopics(a.Context())
		return err == nil && !slices.ContainsFunc(names.All(), func(name string) bool { return name != names.Loop && !have.Has(name) })
	}, wait, 10*time.Millisecond)
}

// background runs a function until the test ends or the returned function is called.
func (a *agent) background(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(a.Context()))
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(a, <-ended)
	})
	a.Cleanup(stop)
	return stop
}

// say sends the message of a new session.
func (a *agent) say(session string) {
	a.mu.Lock()
	a.sent[session] = time.Now()
	a.mu.Unlock()
	_, err := a.user.Say(a.Context(), wiretest.Say{Session: session, Text: "Which berth is free?"}, wiretest.Sent{})
	require.NoError(a, err)
}

// feed sends messages at a steady rate until the test ends or the returned function is called.
func (a *agent) feed(every time.Duration) (stop func()) {
	return a.background(func(ctx context.Context) error {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for n := 0; ; n++ {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return nil
			}
			session := fmt.Sprintf("s-%05d", n)
			a.mu.Lock()
			a.sent[session] = time.Now()
			a.mu.Unlock()
			say := wiretest.Say{Session: session, Text: "Which berth is free?"}
			if _, err := a.user.Say(context.WithoutCancel(ctx), say, wiretest.Sent{}); err != nil {
				return err
			}
		}
	})
}

// ended returns how many sessions have their output.
func (a *agent) ended() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.outputs)
}

// settle waits until the sessions so far have their outputs, and returns the time at which it was called.
func (a *agent) settle() time.Time {
	a.Helper()
	now := time.Now()
	missing := func() (sessions []string) {
		a.mu.Lock()
		defer a.mu.Unlock()
		for session, sent := range a.sent {
			if _, ended := a.outputs[session]; !ended && sent.Before(now) {
				sessions = append(sessions, session)
			}
		}
		return sessions
	}
	if !assert.Eventually(a, func() bool { return len(missing()) == 0 }, wait, 10*time.Millisecond) {
		open := missing()
		a.Fatalf("sessions have no output: %v; %d sessions have one; their records:%s", open, a.ended(), a.recordsOf(open))
	}
	return now
}

// recordsOf describes the records of sessions on the topics between a message and its output: where a turn has stopped.
func (a *agent) recordsOf(sessions []string) string {
	names := wiretest.NamesOf(a.name)
	client, err := kgo.NewClient(kgo.SeedBrokers(a.brokers...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.ConsumeTopics(names.All()...))
	if err != nil {
		return err.Error()
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.Context()), 5*time.Second)
	defer cancel()
	var b strings.Builder
	for ctx.Err() == nil {
		client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			if !slices.Contains(sessions, string(r.Key)) {
				return
			}
			id := ""
			for _, h := range r.Headers {
				if h.Key == topics.HeaderID {
					id = string(h.Value)
				}
			}
			fmt.Fprintf(&b, "\n%s %s/%d@%d %s %s", r.Key, r.Topic, r.Partition, r.Offset, id, r.Timestamp.Format(time.TimeOnly))
		})
	}
	return b.String()
}

func (a *agent) eventually(reached func() bool, what string) {
	a.Helper()
	require.Eventually(a, reached, wait, 10*time.Millisecond, what)
}

// progress waits until n more sessions have their output.
func (a *agent) progress(n int) {
	a.Helper()
	from := a.ended()
	a.eventually(func() bool { return a.ended() >= from+n }, "sessions without output")
}

// judge waits until all promises of the turn are kept and returns the report.
func (a *agent) judge(guarantee processors.Guarantee) wiretest.Report {
	a.Helper()
	ctx, cancel := context.WithTimeout(a.Context(), wait)
	defer cancel()
	return kept(ctx, a, config{agent: a.name, brokers: a.brokers, guarantee: guarantee})
}
