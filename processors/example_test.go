package processors_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"os/signal"
	"strings"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// A group counts the words of each key's lines. It runs until the program is interrupted.
func Example() {
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
		return processors.EmitWithID(c, counts, c.Key(), total, "count/"+c.CauseID())
	}
	edges := processors.Edges("words", processors.Input(lines, count))
	graph := goka.DefineGroup("words", append(edges,
		goka.Persist(codec.JSON[int]()), goka.Output(counts.Stream(), counts.Codec()))...)

	p, err := processors.New([]string{"localhost:9092"}, graph, processors.WithTopicSpecs(lines.Spec(), counts.Spec()))
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := p.Run(ctx); err != nil {
		log.Print(err)
	}
}

// Signs of life are skipped before they are decoded. Without Known they would be dead letters, because they are not JSON.
func ExampleKnown() {
	readings := topics.New(topics.Spec{Name: "readings"}, codec.JSON[int]())
	alarms := topics.New(topics.Spec{Name: "alarms"}, codec.String())
	alive := func(_ *processors.Context, raw []byte) bool { return string(raw) == "alive" }
	watch := func(c *processors.Context, in codec.Decoded[int]) error {
		return processors.EmitWithID(c, alarms, c.Key(), fmt.Sprintf("%d degrees", in.Value), "alarm/"+c.CauseID())
	}
	edges := processors.Edges("watch", processors.Input(readings, watch, processors.Known[int](alive)))
	graph := goka.DefineGroup("watch", append(edges, goka.Output(alarms.Stream(), alarms.Codec()))...)

	p, err := processors.New([]string{"localhost:9092"}, graph)
	if err != nil {
		log.Fatal(err)
	}
	if err := p.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// Under exactly once, outputs, table rows and offsets are one Kafka transaction. Each instance of the group has an ID of its
// own, such as the name of its pod in a StatefulSet.
func ExampleWithGuarantee() {
	orders := topics.New(topics.Spec{Name: "orders"}, codec.String())
	invoices := topics.New(topics.Spec{Name: "invoices"}, codec.String())
	edges := processors.Edges("billing", processors.Input(orders,
		func(c *processors.Context, in codec.Decoded[string]) error {
			return processors.EmitWithID(c, invoices, c.Key(), "invoice for "+in.Value, "invoice/"+c.CauseID())
		}))
	graph := goka.DefineGroup("billing", append(edges, goka.Output(invoices.Stream(), invoices.Codec()))...)

	p, err := processors.New([]string{"localhost:9092"}, graph,
		processors.WithGuarantee(processors.ExactlyOnce), processors.WithInstance(os.Getenv("POD_NAME")))
	if err != nil {
		log.Fatal(err)
	}
	if err := p.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
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
	fmt.Println(errors.Is(err, processors.ErrConfig), strings.Contains(err.Error(), "KAFKA_ACKS: refused"))
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
