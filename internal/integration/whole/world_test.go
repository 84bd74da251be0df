package whole

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

const (
	// waitLimit is the longest wait for an event.
	waitLimit = 90 * time.Second
	// tick is how often tests look.
	tick = 10 * time.Millisecond
	// partitions is the number of partitions of all topics.
	partitions = 2
	// worldLimit is how long a test with processes may take.
	worldLimit = 9 * time.Minute
)

// both runs a test under each guarantee.
func both(t *testing.T, test func(t *testing.T, guarantee processors.Guarantee)) {
	for _, g := range testbroker.Guarantees(t, processors.AtLeastOnce, processors.ExactlyOnce) {
		t.Run(string(g), func(t *testing.T) {
			t.Parallel()
			test(t, g)
		})
	}
}

// world is an agent on a broker, with what a test runs for it, writes to it and reads from it. The worlds of capabilities embed
// it. All that it runs ends with the test.
type world struct {
	t         *testing.T
	ctx       context.Context
	brokers   []string
	guarantee processors.Guarantee
	agent     string
	catalog   topics.Catalog
	to        *processors.KafkaPublisher

	life    context.Context
	end     func()
	mu      sync.Mutex
	waiting map[string]chan topics.Output // for the next output of a session
}

func newWorld(t *testing.T, guarantee processors.Guarantee, opts ...topics.CatalogOption) *world {
	t.Helper()
	w := &world{
		t: t, brokers: testbroker.Start(t), guarantee: guarantee, agent: testbroker.AgentOf(t), waiting: map[string]chan topics.Output{},
	}
	var cancel func()
	w.ctx, cancel = context.WithTimeout(t.Context(), worldLimit)
	t.Cleanup(cancel)
	w.life, w.end = context.WithCancel(context.Background())
	w.catalog = must(topics.For(w.agent, opts...))
	w.to = must(processors.NewPublisher(w.brokers))
	t.Cleanup(func() { require.NoError(t, w.to.Close()) })
	return w
}

// must returns a value whose arguments a test knows to be valid.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// serve runs a function until stop is called. At the end of the test all functions end together.
func (w *world) serve(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(w.life)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, processors.ErrKilled) {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(func() { w.end(); stop() })
	return stop
}

// running is a processor of a test.
type running struct {
	*processors.Processor
	w    *world
	stop func()
}

// start runs a group with its own catalog.
func (w *world) start(instance string, catalog topics.Catalog, graph *goka.GroupGraph, opts ...processors.Option) *running {
	w.t.Helper()
	p, err := processors.New(w.brokers, graph, append(w.options(instance, catalog), opts...)...)
	require.NoError(w.t, err)
	return &running{p, w, w.serve(p.Run)}
}

// run runs a group of the agent, and returns when it does.
func (w *world) run(instance string, graph *goka.GroupGraph, opts ...processors.Option) *running {
	w.t.Helper()
	g := w.start(instance, w.catalog, graph, opts...)
	g.await()
	return g
}

func (w *world) options(instance string, catalog topics.Catalog) []processors.Option {
	return []processors.Option{
		processors.WithTopics(catalog), processors.WithPartitions(partitions), processors.WithInstance(instance),
		processors.WithGuarantee(w.guarantee), processors.WithTick(10 * time.Millisecond),
	}
}

// await waits until the group runs.
func (g *running) await() {
	g.w.t.Helper()
	g.w.eventually(func() bool { return g.Health().State == processors.Running })
}

// kill ends the group as a crash would.
func (g *running) kill() {
	g.Kill()
	g.stop()
}

// child is the configuration of the nth process of the agent.
func (w *world) child(dirs []string, n int) child {
	return child{Agent: w.agent, Brokers: w.brokers, Dir: dirs[n], Instance: "i" + strconv.Itoa(n), Guarantee: w.guarantee}
}

// dirs makes directories for processes.
func (w *world) dirs(n int) (list []string) {
	for len(list) < n {
		list = append(list, w.t.TempDir())
	}
	return list
}

// model runs the model of an agent.
func (w *world) model(agent string, f think.Func) {
	m := must(think.New(agent, w.to, f, think.Config{}))
	w.serve(func(ctx context.Context) error { return m.Run(ctx, w.brokers) })
}

// follow passes the new records of topics to a function, and returns when it does.
func (w *world) follow(take func(processors.Inbound), names ...string) {
	w.t.Helper()
	f := must(processors.NewFollower(w.brokers, names, take))
	w.serve(f.Run)
	select {
	case <-f.Ready():
	case <-w.ctx.Done():
		require.Fail(w.t, "the follower is not ready")
	}
}

// followOutputs passes the outputs of turns to those who expect them.
func (w *world) followOutputs() {
	w.t.Helper()
	w.follow(func(r processors.Inbound) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if c, ok := w.waiting[string(r.Key)]; ok {
			delete(w.waiting, string(r.Key))
			c <- w.catalog.MessageOutput.Codec().Unmarshal(r.Value).Value
		}
	}, w.catalog.MessageOutput.Name())
}

// expect returns a channel for the next output of a session.
func (w *world) expect(session string) <-chan topics.Output {
	c := make(chan topics.Output, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting[session] = c
	return c
}

// write writes a message of a user.
func (w *world) write(ctx context.Context, session, user, text, id string) error {
	role := "user"
	return put(ctx, w, w.catalog.MessageInput, session, topics.Message{
		SessionID: &session, UserID: &user, Role: &role, Content: topics.Raw(strconv.Quote(text)),
	}, id)
}

// ask writes a message of a user and returns the output of its turn.
func (w *world) ask(ctx context.Context, session, user, text, id string) (topics.Output, error) {
	out := w.expect(session)
	if err := w.write(ctx, session, user, text, id); err != nil {
		return topics.Output{}, err
	}
	return next(ctx, out, session)
}

// next waits for the next value and returns it.
func next[T any](ctx context.Context, from <-chan T, what string) (v T, err error) {
	select {
	case v := <-from:
		return v, nil
	case <-ctx.Done():
		return v, fmt.Errorf("nothing comes of %s: %w", what, context.Cause(ctx))
	}
}

// put writes a value to a topic, which may not exist yet.
func put[T any](ctx context.Context, w *world, topic topics.Topic[T], key string, value T, id string) error {
	out, err := processors.OutboundOf(topic, key, value, id)
	if err != nil {
		return err
	}
	for err = w.to.Publish(ctx, out); err != nil && ctx.Err() == nil; err = w.to.Publish(ctx, out) {
		rest(ctx)
	}
	return err
}

// eventually waits until something is so.
func (w *world) eventually(is func() bool, what ...any) {
	w.t.Helper()
	require.Eventually(w.t, is, waitLimit, tick, what...)
}

// rest waits a moment before a request is repeated.
func rest(ctx context.Context) {
	select {
	case <-time.After(20 * time.Millisecond):
	case <-ctx.Done():
	}
}
