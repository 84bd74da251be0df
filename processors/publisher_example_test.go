package processors_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// A program that is not a group graph writes records with a publisher.
func ExampleNewPublisher() {
	publisher, err := processors.NewPublisher([]string{"localhost:9092"})
	if err != nil {
		log.Fatal(err)
	}
	defer publisher.Close()

	lines := topics.New(topics.Spec{Name: "lines"}, codec.String())
	line, err := processors.OutboundOf(lines, "poem", "rose is a rose", "line/1")
	if err != nil {
		log.Print(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := publisher.Publish(ctx, line); err != nil {
		log.Print(err)
	}
}

// A worker handles records that take long, up to 32 at a time. Its offsets are committed in order.
func ExampleConsume() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := processors.Consume(ctx, []string{"localhost:9092"}, processors.Consumption{
		Group: "line-readers", Topics: []string{"lines"}, Concurrency: 32,
		Handle: func(ctx context.Context, r processors.Inbound) error {
			// An error would redeliver the record. After a crash a record is handled again: recognize repeats by the ID.
			fmt.Println(string(r.Key), string(r.Value), string(r.Header(topics.HeaderID)))
			return nil
		},
	})
	if err != nil {
		log.Print(err)
	}
}
