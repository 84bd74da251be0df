package processors_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/lovoo/goka"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/embedded"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// A group that counts words for each key, run against an embedded broker.
func Example() {
	broker, err := embedded.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Close()
	stage := newStage(broker.Addrs(), "lines", "counts")
	defer stage.Close()

	lines := topics.New(topics.Spec{Name: "lines"}, codec.String())
	counts := topics.New(topics.Spec{Name: "counts"}, codec.JSON[int]())
	count := func(c *processors.Context, in codec.Decoded[string]) error {
		total := len(strings.Fields(in.Value))
		if row, ok := c.Value().(codec.Decoded[int]); ok {
			total += row.Value
		}
		if err := c.SetValue(total); err != nil {
			return err
		}
		return processors.Emit(c, counts, c.Key(), total, nil)
	}
	edges := processors.Edges("words", processors.Input(lines, count))
	graph := goka.DefineGroup("words", append(edges,
		goka.Persist(codec.JSON[int]()), goka.Output(counts.Stream(), counts.Codec()))...)

	p, err := processors.New(broker.Addrs(), graph)
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- p.Run(ctx) }()

	stage.put("lines", "s-1", "to be or not")
	stage.put("lines", "s-1", "to be")
	fmt.Println(stage.take(), stage.take())
	stop()
	fmt.Println(<-stopped, p.Health().State)
	// Output:
	// s-1=4 s-1=6
	// <nil> stopped
}

// reminders is a table whose rows are deadlines: eight bytes, in milliseconds.
type reminders struct {
	remind func(*processors.Context) error
}

func (reminders) Encode(v any) ([]byte, error) {
	return binary.BigEndian.AppendUint64(nil, uint64(v.(time.Time).UnixMilli())), nil
}

func (reminders) Decode(b []byte) (any, error) {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(b))), nil
}

func (reminders) Deadline(row []byte) (ms int64, ok bool) {
	if len(row) != 8 {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(row)), true
}

func (r reminders) OnDeadline(ctx goka.Context, _ processors.Due) {
	processors.OnDeadline(ctx, r.remind)
}

// A table whose codec is Timed: each row fires when its deadline has come.
func ExampleOnDeadline() {
	broker, err := embedded.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Close()
	stage := newStage(broker.Addrs(), "wishes", "reminders")
	defer stage.Close()

	wishes := topics.New(topics.Spec{Name: "wishes"}, codec.String())
	reminded := topics.New(topics.Spec{Name: "reminders"}, codec.String())
	table := reminders{func(c *processors.Context) error {
		if c.Value().(time.Time).After(c.Now()) {
			return nil // moved since
		}
		if err := processors.Emit(c, reminded, c.Key(), "it is time", nil); err != nil {
			return err
		}
		return c.Delete()
	}}
	edges := processors.Edges("clock", processors.Input(wishes,
		func(c *processors.Context, in codec.Decoded[string]) error {
			wait, err := time.ParseDuration(in.Value)
			if err != nil {
				return c.DeadLetter("no duration")
			}
			return c.SetValue(c.Now().Add(wait))
		}))
	graph := goka.DefineGroup("clock", append(edges,
		goka.Persist(table), goka.Output(reminded.Stream(), reminded.Codec()))...)
	p, err := processors.New(broker.Addrs(), graph, processors.WithTick(5*time.Millisecond))
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- p.Run(ctx) }()

	stage.put("wishes", "s-1", "20ms")
	fmt.Println(stage.take())
	stop()
	fmt.Println(<-stopped)
	// Output:
	// s-1=it is time
	// <nil>
}

func ExampleFromEnviron() {
	env, err := processors.FromEnviron([]string{
		"KAFKA_BOOTSTRAP_SERVERS=kafka-1:9092,kafka-2:9092",
		"KAFKA_COMPRESSION_TYPE=lz4",
		"KAFKA_HEAP_OPTS=-Xmx1g",
	})
	fmt.Println(env.Brokers, err)
	fmt.Println("ignored:", env.Ignored)

	_, err = processors.FromEnviron([]string{"KAFKA_ACKS=1"})
	fmt.Println(errors.Is(err, processors.ErrConfig), strings.Contains(err.Error(), "acks: refused"))
	// Output:
	// [kafka-1:9092 kafka-2:9092] <nil>
	// ignored: [KAFKA_HEAP_OPTS]
	// true true
}

func ExampleHealthHandler() {
	lines := topics.New(topics.Spec{Name: "lines"}, codec.String())
	ignore := func(*processors.Context, codec.Decoded[string]) error { return nil }
	graph := goka.DefineGroup("words", processors.Edges("words", processors.Input(lines, ignore))...)
	p, err := processors.New([]string{"localhost:9092"}, graph)
	if err != nil {
		log.Fatal(err)
	}
	w := httptest.NewRecorder()
	processors.HealthHandler(p).ServeHTTP(w, httptest.NewRequest("GET", "/healthz", nil))
	fmt.Println(w.Code, p.Health().State)
	// Output: 503 not started
}

// stage is what stands before and behind a group in the examples.
type stage struct{ *kgo.Client }

func newStage(addrs []string, in, out string) stage {
	client, err := kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.ConsumeTopics(out),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := kadm.NewClient(client).CreateTopics(context.Background(), 1, 1, nil, in, out); err != nil {
		log.Fatal(err)
	}
	return stage{client}
}

func (s stage) put(topic, key, value string) {
	r := &kgo.Record{Topic: topic, Key: []byte(key), Value: []byte(value)}
	if err := s.ProduceSync(context.Background(), r).FirstErr(); err != nil {
		log.Fatal(err)
	}
}

// take is the next record of the output topic.
func (s stage) take() string {
	for {
		for _, r := range s.PollRecords(context.Background(), 1).Records() {
			return string(r.Key) + "=" + string(r.Value)
		}
	}
}
