package processors_test

import (
	"context"
	"log"
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
