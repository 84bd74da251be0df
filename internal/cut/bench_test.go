package cut

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

// likeGoka is Goka's context as far as it costs something: what it does with options, headers and promises.
type likeGoka struct {
	gokaContext
	key      string
	producer *Producer
	m        sync.Mutex
	emits    int
	dones    int
}

func (c *likeGoka) Partition() int32     { return 0 }
func (c *likeGoka) Key() string          { return c.key }
func (c *likeGoka) Topic() goka.Stream   { return "in" }
func (c *likeGoka) Timestamp() time.Time { return time.UnixMilli(1_700_000_000_123) }

func (c *likeGoka) Emit(topic goka.Stream, key string, value any, options ...goka.ContextOption) {
	apply(options)
	raw, _ := benched.Encode(value)
	var defaults goka.Headers
	c.emit(string(topic), key, raw, defaults.Merged(withID))
}

func (c *likeGoka) SetValue(value any, options ...goka.ContextOption) {
	apply(options)
	raw, _ := benched.Encode(value)
	c.emit("table", c.key, raw, onlyMarker)
}

func (c *likeGoka) emit(topic, key string, raw []byte, headers goka.Headers) {
	c.emits++
	c.producer.EmitWithHeaders(topic, key, raw, headers).Then(func(err error) {
		if err != nil {
			err = fmt.Errorf("error emitting to %s: %w", topic, err)
		}
		c.emitDone(err)
	})
}

func (c *likeGoka) emitDone(error) {
	c.m.Lock()
	defer c.m.Unlock()
	c.dones++
}

func (c *likeGoka) DeferCommit() func(error) {
	c.m.Lock()
	defer c.m.Unlock()
	c.emits++
	var once sync.Once
	return func(err error) { once.Do(func() { c.emitDone(err) }) }
}

// apply calls options as Goka does. Their parameter has no name outside of Goka.
func apply[F ~func(*O), O any](options []F) *O {
	o := new(O)
	for _, option := range options {
		option(o)
	}
	return o
}

// kept are the store of a table.
type kept struct{ Rows }

func (kept) Set(string, []byte) error { return nil }

var (
	benched    = codec.Bytes()
	userID     = "0123456789abcdef0123456789abcdef"
	onlyMarker = goka.Headers{"\x00partition": {0, 0, 0, 0}}
	withID     = goka.Headers{"turntable.id": []byte(userID)}.Merged(onlyMarker)
)

// BenchmarkCallback is what the context of a callback costs that emits a record with an id and writes its row.
func BenchmarkCallback(b *testing.B) {
	l := &line{
		in: make(chan *sarama.ProducerMessage, 256), done: make(chan *sarama.ProducerMessage, 256), errs: make(chan *sarama.ProducerError),
	}
	p := NewProducer(l, ProducerOptions{
		Table: "table", Ordered: true, Failed: func(error) {}, Broken: func(error) {},
	})
	var acks sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	acks.Go(func() {
		for {
			select {
			case m := <-l.in:
				l.done <- m
			case <-ctx.Done():
				return
			}
		}
	})
	w := &Wrap{
		Clock: clock.System(), Partitions: func() int32 { return 4 }, Rows: func(int32) Rows { return kept{} },
		Edges:  EdgesOf(goka.DefineGroup("g", goka.Output("out", benched), goka.Persist(benched))),
		Failed: func(error) {},
	}
	keys := make([]string, 64)
	for i := range keys {
		keys[i] = fmt.Sprintf("session-%d", i)
	}
	encoded := func(size int) any { return codec.Decoded[[]byte]{Raw: make([]byte, size), Err: context.Canceled} }
	value, row := encoded(800), encoded(3000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c := w.Context(&likeGoka{key: keys[i%len(keys)], producer: p}, p)
		c.(runtimeapi.Runtime).EmitWithID("out", "user-1", value, userID)
		c.SetValue(row)
		if i%len(keys) == len(keys)-1 {
			rows := p.Seal()
			select {
			case <-rows.Done():
			case <-time.After(10 * time.Second):
				b.Fatal("the rows are not settled")
			}
		}
	}
	b.StopTimer()
	cancel()
	acks.Wait()
	_ = p.Close()
}
