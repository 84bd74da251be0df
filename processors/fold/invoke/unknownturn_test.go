package invoke

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// counted is a follower that counts the reads from topics.
type counted struct {
	follower
	reads atomic.Int64
}

func (c *counted) ReplayFrom(ctx context.Context, topic string, partition int32, begin int64,
	take func(context.Context, processors.Inbound) bool,
) (int64, error) {
	c.reads.Add(1)
	return c.follower.ReplayFrom(ctx, topic, partition, begin, take)
}

func (c *counted) ReplayRange(ctx context.Context, topic string, partition int32, begin, end int64,
	take func(context.Context, processors.Inbound) bool,
) (int64, error) {
	c.reads.Add(1)
	return c.follower.ReplayRange(ctx, topic, partition, begin, end, take)
}

// count counts the reads of a pipeline that is ready.
func count(p *Pipeline) *counted {
	c := &counted{follower: p.follower}
	p.follower = c
	return c
}

// guarantees are the ways in which events are written: one by one, or in transactions, whose markers are at the ends of the
// partitions.
var guarantees = map[string]func(b *broker, events ...topics.AgentEvent){
	"at least once": func(b *broker, events ...topics.AgentEvent) { b.write(events...) },
	"exactly once":  (*broker).writeInTransaction,
}

func (b *broker) writeInTransaction(events ...topics.AgentEvent) {
	b.t.Helper()
	ctx := context.WithoutCancel(b.t.Context()) // as write
	to, err := kgo.NewClient(kgo.SeedBrokers(b.addrs...), kgo.TransactionalID(b.t.Name()))
	require.NoError(b.t, err)
	defer to.Close()
	require.NoError(b.t, to.BeginTransaction())
	for _, e := range events {
		raw, err := b.catalog.AgentEvents.Codec().Marshal(e)
		require.NoError(b.t, err)
		r := &kgo.Record{Topic: b.catalog.AgentEvents.Name(), Key: []byte(e.SessionID), Value: raw}
		require.NoError(b.t, to.ProduceSync(ctx, r).FirstErr())
	}
	require.NoError(b.t, to.EndTransaction(ctx, kgo.TryCommit))
}

// writeAll writes records without waiting for each.
func (b *broker) writeAll(events []topics.AgentEvent) {
	b.t.Helper()
	to, err := kgo.NewClient(kgo.SeedBrokers(b.addrs...), kgo.MaxBufferedRecords(5000))
	require.NoError(b.t, err)
	defer to.Close()
	for _, e := range events {
		raw, err := b.catalog.AgentEvents.Codec().Marshal(e)
		require.NoError(b.t, err)
		r := &kgo.Record{Topic: b.catalog.AgentEvents.Name(), Key: []byte(e.SessionID), Value: raw}
		to.Produce(b.t.Context(), r, func(_ *kgo.Record, err error) {
			if err != nil {
				b.t.Error(err)
			}
		})
	}
	require.NoError(b.t, to.Flush(b.t.Context()))
}

// kilobyte is an event of 1 KB.
var kilobyte = topics.Raw(`{"type":"data","data":{"x":"` + strings.Repeat("y", 1000) + `"}}`)

// others writes n records of other sessions.
func (b *broker) others(n int) {
	b.t.Helper()
	var events []topics.AgentEvent
	for i := range n {
		events = append(events, topics.AgentEvent{
			SessionID: fmt.Sprint("other-", i%100), TurnID: "t", Attempt: 1, Seq: int64(i/100 + 1), Event: kilobyte,
		})
	}
	b.writeAll(events)
}

// hundred calls f concurrently as 100 callers.
func hundred(f func(caller int)) {
	var callers sync.WaitGroup
	for i := range 100 {
		callers.Go(func() { f(i) })
	}
	callers.Wait()
}

func TestNothingIsReadForTurnsThatDoNotExist(t *testing.T) {
	t.Parallel()
	for name, write := range guarantees {
		t.Run(name, func(t *testing.T) {
			b := newBroker(t)
			b.others(3000)
			events := scripted(t, hello).events
			write(b, records("s-1", "t", 1, events, topics.AgentResult{OK: true, StopReason: &endTurn})...)
			p := b.pipeline()
			topic := count(p)
			s := serve(t, must(New(p, Config{Random: &counting{}})))
			hundred(func(i int) {
				session := []string{"s-1", "ghost", "other-1"}[i%3]
				for _, id := range []EventID{{"nobody", 1, 0}, {"nobody", 1, 5}, {"nobody", 2, 0}, {fmt.Sprint("invented-", i), 1, 0}} {
					if _, err := p.Resume(t.Context(), Request{SessionID: session}, id); !errors.Is(err, ErrGone) {
						t.Errorf("%s of %s: %v", id, session, err)
					}
				}
			})
			require.Zero(t, topic.reads.Load())
			require.Empty(t, p.hub.sessions, "no response stays open")

			status := s.statusOf(`{"session_id":"s-1"}`, HeaderLastEvent, "nobody.1.0", "Accept", "text/event-stream")
			require.Equal(t, http.StatusGone, status)
			require.Zero(t, topic.reads.Load())
			require.Equal(t, http.StatusOK, s.statusOf(`{"session_id":"s-1"}`, HeaderLastEvent, "t.1.2"))
			require.Equal(t, int64(1), topic.reads.Load(), "one chunk")
		})
	}
}

// A repeated request is answered from the index of any process: nothing is read for a new key, and only the turn for one that
// was used before.
func TestRepeatedRequestReadsItsTurnOnly(t *testing.T) {
	t.Parallel()
	for name, write := range guarantees {
		t.Run(name, func(t *testing.T) {
			b := newBroker(t)
			b.others(3000)
			messages := b.messages()
			running, started := b.pipeline(), make(chan int, 1)
			topic := count(running)
			s := serve(t, must(New(running, Config{Random: &counting{}})))
			go func() { started <- s.statusOf(question, "Idempotency-Key", "k") }()
			m := <-messages
			write(b, records("s-1", requestOf(m), 1, scripted(t, hello).events, topics.AgentResult{OK: true})...)
			require.Equal(t, http.StatusOK, <-started)
			require.Zero(t, topic.reads.Load(), "the key is new")

			for _, p := range []*Pipeline{running, b.pipeline()} {
				topic := count(p)
				s := serve(t, must(New(p, Config{Random: &counting{}})))
				require.Equal(t, "Hello, wörld", said(t, s.invoke(question, "Idempotency-Key", "k").body))
				require.Equal(t, int64(1), topic.reads.Load(), "one chunk")
			}
			require.Empty(t, messages, "the message was written once")
		})
	}
}

// A request that failed before its turn had an event fails again in every process.
func TestRepeatedRequestFailsAgain(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	b.answering(func(m topics.Message) []topics.AgentEvent {
		requested, status := requestOf(m), "error"
		out, err := processors.OutboundOf(b.catalog.MessageOutput, "s-1", topics.Output{
			SessionID: m.SessionID, RequestID: &requested, Status: &status,
			Error: &topics.OutputError{Code: "busy", Message: "a turn is running"},
		}, "")
		require.NoError(t, err)
		require.NoError(t, b.to.Publish(context.Background(), out))
		return nil
	})
	first := serve(t, must(New(b.pipeline(), Config{Random: &counting{}})))
	require.Equal(t, http.StatusBadGateway, first.invoke(question, "Idempotency-Key", "k").status)
	for _, s := range []*site{first, serve(t, must(New(b.pipeline(), Config{Random: &counting{}})))} {
		again := s.invoke(question, "Idempotency-Key", "k")
		require.Equal(t, http.StatusBadGateway, again.status)
		require.Equal(t, "a turn is running", textAt(t, again.body, "status", "message"))
	}
}

// A turn whose message was accepted, but that has no event yet, can be read in any process, also in one that was started
// later.
func TestTurnThatIsAboutToBeginCanBeRead(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	messages := b.messages()
	one, two := b.pipeline(), b.pipeline()
	stream, err := one.Invoke(t.Context(), Request{
		SessionID: "s-1", Trace: Trace{TraceID: "t", SpanID: "u"},
		Data: topics.Raw(`{"inputs":{"messages":[{"role":"user","content":"x"}]}}`),
	})
	require.NoError(t, err)
	defer stream.Close()
	m := <-messages
	for _, p := range []*Pipeline{one, two, b.pipeline()} {
		resumed, err := p.Resume(t.Context(), Request{SessionID: "s-1"}, EventID{requestOf(m), 1, 0})
		require.NoError(t, err)
		defer resumed.Close()
		_, err = p.Resume(t.Context(), Request{SessionID: "s-1"}, EventID{requestOf(m), 1, 1})
		require.ErrorIs(t, err, ErrGone, "it has no event")
		defer func() {
			item, err := resumed.Next(t.Context())
			require.NoError(t, err)
			require.Equal(t, uint64(1), item.ID.Seq)
		}()
	}
	b.write(records("s-1", requestOf(m), 1, scripted(t, hello).events, topics.AgentResult{OK: true})...)
}

// A slot is not taken while a client reads.
func TestSlowReadersDelayNoOther(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	var events []topics.AgentEvent
	for i := range 800 {
		events = append(events, topics.AgentEvent{
			SessionID: "s-1", TurnID: "long", Attempt: 1, Seq: int64(i + 1), Event: kilobyte,
		})
	}
	b.writeAll(events)
	b.write(records("s-2", "short", 1, scripted(t, hello).events, topics.AgentResult{OK: true, StopReason: &endTurn})...)
	p := b.pipeline()
	var slow []Stream
	for range replaySlots + 2 {
		s, err := p.Resume(t.Context(), Request{SessionID: "s-1"}, EventID{"long", 1, 0})
		require.NoError(t, err)
		slow = append(slow, s) // no call of Next
	}
	site := serve(t, must(New(p, Config{})))
	require.Equal(t, "Hello, wörld", said(t, site.invoke(`{"session_id":"s-2"}`, HeaderLastEvent, "short.1.0").body))
	for _, s := range slow {
		for seq := range uint64(800) {
			item, err := s.Next(t.Context())
			require.NoError(t, err)
			require.Equal(t, seq+1, item.ID.Seq, "chunk by chunk")
		}
		require.NoError(t, s.Close())
	}
}

// A record can name the request after the stream of the request was opened, and after the turn's first records.
func TestTurnThatBeganBeforeItsRequestIsNamedIsReadFromItsFirstRecord(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	messages := b.messages()
	list := records("s-1", "its own name", 1, scripted(t, hello).events, topics.AgentResult{OK: true, StopReason: &endTurn})
	b.write(list[:2]...)
	p := b.pipeline(func(c *PipelineConfig) { c.Clock = clock.NewFake(time.Now()) })
	s := serve(t, must(New(p, Config{Random: &counting{}})))
	answered := make(chan got, 1)
	go func() { answered <- s.invoke(question, "Idempotency-Key", "k") }()
	m := <-messages
	list[2].Request = topics.Raw(`{"latest_input":{"metadata":{"request_id":"` + requestOf(m) + `"}}}`)
	b.write(list[2:]...)
	require.Equal(t, "Hello, wörld", said(t, (<-answered).body))
}

// BenchmarkKeyedRequest measures a request with a new Idempotency-Key while a partition has 60 MB of other sessions: alone,
// and beside 100 callers who ask for turns that do not exist.
func BenchmarkKeyedRequest(b *testing.B) {
	for _, hostile := range []int{0, 100} {
		b.Run(fmt.Sprintf("beside %d", hostile), func(b *testing.B) {
			k := newBroker(b)
			k.others(60_000)
			events := scripted(b, hello).events
			k.answering(func(m topics.Message) []topics.AgentEvent {
				return records(*m.SessionID, requestOf(m), 1, events, topics.AgentResult{OK: true, StopReason: &endTurn})
			})
			s := serve(b, must(New(k.pipeline(), Config{Random: &counting{}})))
			ctx, stop := context.WithCancel(b.Context())
			var callers sync.WaitGroup
			for range hostile {
				callers.Go(func() {
					for ctx.Err() == nil {
						s.statusOf(`{"session_id":"ghost"}`, HeaderLastEvent, "ghost.1.1")
					}
				})
			}
			n := 0
			for b.Loop() {
				n++
				if a := s.invoke(question, "Idempotency-Key", fmt.Sprint("k-", n)); a.status != http.StatusOK {
					b.Fatal(a.status, a.body)
				}
			}
			stop()
			callers.Wait()
		})
	}
}
