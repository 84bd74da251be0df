package processors_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/embedded"
	"github.com/turntable-streams/turntable/topics"
)

// alarms is a table of deadlines: a row is eight bytes, the milliseconds at which it is due.
type alarms struct {
	fire func(*processors.Context) error
}

func (alarms) Encode(v any) ([]byte, error) { return v.([]byte), nil }
func (alarms) Decode(b []byte) (any, error) { return b, nil }

func (alarms) Deadline(row []byte) (int64, bool) {
	if len(row) != 8 {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(row)), true
}

func (a alarms) OnDeadline(ctx goka.Context, _ processors.Due) { processors.OnDeadline(ctx, a.fire) }

func graphOf(h processors.Handler[asked], table goka.Codec) *goka.GroupGraph {
	edges := processors.Edges(group, processors.Input(asks, h, processors.KeyedBy(sessionOf)))
	return goka.DefineGroup(group, append(edges, goka.Persist(table), goka.Output(answers.Stream(), answers.Codec()))...)
}

func TestRecordsReachTheirHandlersWhereverTheyStand(t *testing.T) {
	const partitions = 4
	f := newField(t, partitions)
	var mu sync.Mutex
	at := map[string]int32{}
	f.start(graphOf(func(c *processors.Context, in codec.Decoded[asked]) error {
		mu.Lock()
		at[in.Value.Text] = c.Partition()
		mu.Unlock()
		if err := c.SetValue(in.Value.Text); err != nil {
			return err
		}
		return processors.Emit(c, answers, c.Key(), c.Topic()+" "+in.Value.Text, nil)
	}, codec.String()))

	home := codec.PartitionOf("s-1", partitions)
	f.put(home, []byte("s-1"), quote("s-1", "at home"))
	f.put((home+1)%partitions, []byte("s-1"), quote("s-1", "abroad"))
	f.put((home+2)%partitions, nil, quote("s-1", "keyless"))
	for _, r := range f.take("answers", 3) {
		require.Equal(t, "s-1", string(r.Key))
		require.True(t, strings.HasPrefix(string(r.Value), askName+" "))
	}
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, map[string]int32{
		"at home": home, "abroad": (home + 1) % partitions, "keyless": (home + 2) % partitions,
	}, at)
	for _, r := range f.take("floor-table", 1) { // rows in quick succession are one record
		require.Equal(t, home, r.Partition)
	}
}

func TestDeadLettersKeepTheRecordAndTakeTheConfiguredName(t *testing.T) {
	f := newField(t, 1)
	core, logs := observer.New(zap.InfoLevel)
	var counted atomic.Int32
	f.start(graphOf(func(c *processors.Context, in codec.Decoded[asked]) error {
		if in.Value.Text == "panic" {
			panic(in.Value.Text)
		}
		return c.DeadLetter("no such floor")
	}, codec.String()),
		processors.WithDeadLetters("lost"), processors.WithMaxRecordBytes(8<<10), processors.WithLogger(zap.New(core)),
		processors.WithMetrics(processors.Metrics{DeadLetter: func(*processors.RecordError) { counted.Add(1) }}))

	f.put(0, nil, []byte("{secret"), kgo.RecordHeader{Key: "trace", Value: []byte("t-9")})
	f.put(0, []byte{}, []byte(`{"text":"secret"}`))
	f.put(0, []byte("s-1"), quote("s-1", "panic"))
	f.put(0, []byte("s-1"), quote("s-1", "secret"))
	f.put(0, []byte("s-1"), []byte(strings.Repeat("secret", 4<<10)))
	f.put(0, []byte("else"), quote("s-1", strings.Repeat("secret", 4<<10)))

	got := f.take("lost", 6)
	require.Nil(t, got[0].Key)
	require.Equal(t, "{secret", string(got[0].Value))
	require.Equal(t, "t-9", header(got[0], "trace"))
	for i, r := range got {
		require.Equal(t, askName, header(r, "error.source.topic"))
		require.Equal(t, string(rune('0'+i)), header(r, "error.source.offset"))
		require.Equal(t, "floor", header(r, "error.group"))
		require.NotContains(t, header(r, "error.reason"), "secret")
	}
	require.NotNil(t, got[1].Key)
	require.Empty(t, got[1].Key)
	require.Contains(t, header(got[2], "error.reason"), "panic: string in")
	require.Equal(t, "no such floor", header(got[3], "error.reason"))
	require.Equal(t, "24576", header(got[4], "error.truncated"))
	require.Contains(t, header(got[5], "error.reason"), "too large for the loop topic")

	require.EqualValues(t, 6, counted.Load())
	require.Len(t, logs.FilterMessage("record dead-lettered").All(), 6)
	for _, entry := range logs.All() {
		for _, field := range entry.Context {
			require.NotContains(t, field.String, "secret")
		}
	}
}

func TestFailedHandlerIsCalledAgainWithTheSameRecord(t *testing.T) {
	f := newField(t, 1)
	var calls atomic.Int32
	var mu sync.Mutex
	var causes []error
	p := f.start(graphOf(func(c *processors.Context, in codec.Decoded[asked]) error {
		if in.Value.Text == "second" {
			if *in.Value.Session != "s-1" {
				panic("the value was not decoded again")
			}
			*in.Value.Session = "modified"
			if calls.Add(1) <= 2 {
				return errors.New("disk is full")
			}
		}
		return processors.Emit(c, answers, c.Key(), in.Value.Text, nil)
	}, codec.String()), processors.WithRestartBackoff(time.Millisecond, time.Millisecond),
		processors.WithMetrics(processors.Metrics{Retry: func(err error, attempts int, _ time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			causes = append(causes, err)
			require.Len(t, causes, attempts)
		}}))
	for _, text := range []string{"first", "second", "third"} {
		f.put(0, []byte("s-1"), quote("s-1", text))
	}
	var seen []string
	for _, r := range f.take("answers", 3) {
		seen = append(seen, string(r.Value))
	}
	require.Equal(t, []string{"first", "second", "third"}, seen)
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, causes, 2)
	var err *processors.RecordError
	require.ErrorAs(t, causes[0], &err)
	require.EqualValues(t, 1, err.Offset)
	require.Equal(t, processors.StageHandle, err.Stage)
	require.Zero(t, p.Health().Restarts)
}

func TestDeadlineFiresUnderTheOptionsOfNew(t *testing.T) {
	f := newField(t, 1)
	now := clock.NewFake(time.UnixMilli(1_700_000_000_000))
	due := now.Now().Add(time.Hour)
	p := f.start(graphOf(func(c *processors.Context, _ codec.Decoded[asked]) error {
		return c.SetValue(binary.BigEndian.AppendUint64(nil, uint64(due.UnixMilli())))
	}, alarms{func(c *processors.Context) error {
		if err := c.DeadLetter("nobody came"); err != nil {
			return err
		}
		return c.Delete()
	}}), processors.WithClock(now), processors.WithTick(time.Second), processors.WithDeadLetters("lost"))
	f.put(0, []byte("s-1"), quote("s-1", "x"))
	require.Eventually(t, func() bool {
		row, err := p.Get("s-1")
		return err == nil && row != nil
	}, waitLimit, 5*time.Millisecond)

	now.Advance(time.Hour)
	letter := f.take("lost", 1)[0]
	require.Equal(t, "s-1", string(letter.Key))
	require.Nil(t, letter.Value)
	require.Equal(t, "floor-timer", header(letter, "error.source.topic"))
	require.Eventually(t, func() bool {
		row, err := p.Get("s-1")
		return err == nil && row == nil
	}, waitLimit, 5*time.Millisecond)
}

func TestGraphCanBeRunTwiceAtOnce(t *testing.T) {
	f := newField(t, 2)
	graph := graphOf(func(c *processors.Context, in codec.Decoded[asked]) error {
		return processors.Emit(c, answers, c.Key(), in.Value.Text, nil)
	}, codec.String())
	f.start(graph)
	f.start(graph, processors.WithDeadLetters("lost"))
	f.put(codec.PartitionOf("s-1", 2), []byte("s-1"), quote("s-1", "x"))
	require.Equal(t, "x", string(f.take("answers", 1)[0].Value))
}

func TestKillEndsRunWithoutAStop(t *testing.T) {
	f := newField(t, 1)
	p, err := processors.New(f.addrs, graphOf(nil, codec.String()))
	require.NoError(t, err)
	ran := make(chan error, 1)
	go func() { ran <- p.Run(context.Background()) }()
	require.Eventually(t, func() bool { return p.Health().State == processors.Running }, waitLimit, 5*time.Millisecond)
	p.Kill()
	require.ErrorIs(t, <-ran, processors.ErrKilled)
	require.ErrorIs(t, p.Run(context.Background()), processors.ErrRan)
	_, err = p.Get("s-1")
	require.ErrorIs(t, err, processors.ErrNotRunning)
}

func TestHealthIsServedAsJSON(t *testing.T) {
	f := newField(t, 1)
	idle, err := processors.New(f.addrs, graphOf(nil, codec.String()))
	require.NoError(t, err)
	get := func(p *processors.Processor, method string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		processors.HealthHandler(p).ServeHTTP(w, httptest.NewRequest(method, "/healthz", nil))
		return w
	}
	w := get(idle, http.MethodGet)
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Contains(t, w.Body.String(), `"state":"not started"`)

	p := f.start(graphOf(nil, codec.String()))
	require.Eventually(t, func() bool { return len(p.Health().Lag[askName]) > 0 }, waitLimit, 5*time.Millisecond)
	w = get(p, http.MethodGet)
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	require.Contains(t, w.Body.String(), `"state":"running"`)
	require.Contains(t, w.Body.String(), `"asks":{"0":0}`)
	require.Equal(t, http.StatusMethodNotAllowed, get(p, http.MethodPost).Code)
}

// The page of any site can make its name resolve to a loopback address.
func TestHealthOfALoopbackAddressIsNotForOtherNames(t *testing.T) {
	f := newField(t, 1)
	p, err := processors.New(f.addrs, graphOf(nil, codec.String()))
	require.NoError(t, err)
	get := func(h http.Handler, at, host string) int {
		ip := net.ParseIP(at)
		r := httptest.NewRequest(http.MethodGet, "/healthz", nil)
		r.Host = host
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: ip, Port: 8080}))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	for _, h := range []http.Handler{processors.HealthHandler(p), processors.DetailedHealthHandler(p)} {
		for _, at := range []string{"127.0.0.1", "127.3.2.1", "::1"} {
			for _, host := range []string{"evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "192.0.2.1", ""} {
				require.Equal(t, http.StatusForbidden, get(h, at, host), "%s at %s", host, at)
			}
			for _, host := range []string{"localhost", "LocalHost:8080", "127.0.0.1:8080", "[::1]:8080"} {
				require.Equal(t, http.StatusServiceUnavailable, get(h, at, host), "%s at %s", host, at)
			}
		}
		require.Equal(t, http.StatusServiceUnavailable, get(h, "192.0.2.7", "pod.cluster.local"), "a probe from outside")
	}
}

func TestHealthRevealsNoSessionAndNoContent(t *testing.T) {
	f := newField(t, 1)
	failing := func(c *processors.Context, in codec.Decoded[asked]) error {
		return errors.New("cannot handle " + in.Value.Text)
	}
	p, err := processors.New(f.addrs, graphOf(failing, codec.String()))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- p.Run(ctx) }()
	f.put(0, []byte("s-1"), quote("s-1", "the content"))
	require.Eventually(t, func() bool { return p.Health().Err != nil }, waitLimit, 5*time.Millisecond)
	cancel()
	<-ran // the last error is kept
	get := func(h http.Handler) string {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/healthz", nil))
		return w.Body.String()
	}
	public := get(processors.HealthHandler(p))
	require.Contains(t, public, `"restarts":`)
	require.NotContains(t, public, "s-1")
	require.NotContains(t, public, "the content")
	require.Contains(t, get(processors.DetailedHealthHandler(p)), "the content")
}

// topicsOf runs a processor until it is running, and returns the topics that there are then.
func topicsOf(t *testing.T, b *embedded.Broker, p *processors.Processor) kadm.TopicDetails {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- p.Run(ctx) }()
	require.Eventually(t, func() bool { return p.Health().State == processors.Running }, waitLimit, 5*time.Millisecond)
	cancel()
	require.NoError(t, <-ran)

	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...))
	require.NoError(t, err)
	defer client.Close()
	listed, err := kadm.NewClient(client).ListTopics(t.Context())
	require.NoError(t, err)
	return listed
}

// The outputs of a graph of one's own exist before its first record, which may come a day later.
func TestRunCreatesTheTopicsOfSpecs(t *testing.T) {
	b, err := embedded.Start(embedded.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	named := func(name string) topics.Topic[string] {
		return topics.New(topics.Spec{Name: name, CoPartitioned: true}, codec.String())
	}
	in, out, forgotten := named("lines"), named("words"), named("letters")
	edges := processors.Edges("words", processors.Input(in, func(*processors.Context, codec.Decoded[string]) error { return nil }))
	graph := goka.DefineGroup("words",
		append(edges, goka.Output(out.Stream(), out.Codec()), goka.Output(forgotten.Stream(), forgotten.Codec()))...)
	core, logs := observer.New(zap.WarnLevel)
	p, err := processors.New(b.Addrs(), graph, processors.WithTopicSpecs(in.Spec(), out.Spec()), processors.WithPartitions(3),
		processors.WithReplication(1), processors.WithLogger(zap.New(core)))
	require.NoError(t, err)
	listed := topicsOf(t, b, p)
	require.Len(t, listed["lines"].Partitions, 3)
	require.Len(t, listed["words"].Partitions, 3)
	missing := logs.FilterMessageSnippet("an output does not exist").All()
	require.Len(t, missing, 1)
	require.Equal(t, "letters", missing[0].ContextMap()["topic"])
}

func TestRunCreatesTheTopicsOfACatalog(t *testing.T) {
	b, err := embedded.Start(embedded.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	catalog, err := topics.For("pilot")
	require.NoError(t, err)
	edges := processors.Edges(catalog.Group(), processors.Input(catalog.ToolUseResult,
		func(*processors.Context, codec.Decoded[topics.ToolUseResult]) error { return nil }))
	graph := goka.DefineGroup(catalog.Group(), edges...)
	p, err := processors.New(b.Addrs(), graph, processors.WithTopics(catalog), processors.WithPartitions(3),
		processors.WithReplication(1))
	require.NoError(t, err)
	listed := topicsOf(t, b, p)
	require.Len(t, listed["pilot-message-input"].Partitions, 3)
	require.Len(t, listed["pilot-streams-loop"].Partitions, 3)

	again, err := processors.New(b.Addrs(), graph, processors.WithTopics(catalog), processors.WithPartitions(5))
	require.NoError(t, err)
	require.ErrorIs(t, again.Run(context.Background()), topics.ErrPartitions)
	require.Equal(t, processors.Stopped, again.Health().State)
	require.ErrorIs(t, again.Health().Err, topics.ErrPartitions)
}

func TestRunWaitsForABrokerThatIsNotThereYet(t *testing.T) {
	catalog, err := topics.For("pilot")
	require.NoError(t, err)
	edges := processors.Edges(catalog.Group(), processors.Input(catalog.ToolUseResult,
		func(*processors.Context, codec.Decoded[topics.ToolUseResult]) error { return nil }))
	graph := goka.DefineGroup(catalog.Group(), edges...)
	run := func(end func(context.CancelFunc, *processors.Processor)) error {
		p, err := processors.New([]string{"127.0.0.1:1"}, graph, processors.WithTopics(catalog),
			processors.WithRestartLimit(-1))
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		ran := make(chan error, 1)
		go func() { ran <- p.Run(ctx) }()
		require.Eventually(t, func() bool { return p.Health().State == processors.Recovering }, waitLimit, time.Millisecond)
		end(cancel, p)
		return <-ran
	}
	require.NoError(t, run(func(cancel context.CancelFunc, _ *processors.Processor) { cancel() }))
	require.ErrorIs(t, run(func(_ context.CancelFunc, p *processors.Processor) { p.Kill() }), processors.ErrKilled)
}
