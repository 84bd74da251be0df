package processors_test

import (
	"context"
	"fmt"
	"log"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/embedded"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// What is no group graph writes with a Publisher and reads with Consume.
func ExamplePublisher() {
	broker, err := embedded.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Close()
	stage := newStage(broker.Addrs(), "lines", "counts")
	defer stage.Close()

	publisher, err := processors.NewPublisher(broker.Addrs())
	if err != nil {
		log.Fatal(err)
	}
	defer publisher.Close()
	lines := topics.New(topics.Spec{Name: "lines"}, codec.String())
	line, err := processors.OutboundOf(lines, "poem", "rose is a rose", "l-1")
	if err != nil {
		log.Fatal(err)
	}
	if err := publisher.Publish(context.Background(), line); err != nil {
		log.Fatal(err)
	}

	ctx, stop := context.WithCancel(context.Background())
	err = processors.Consume(ctx, broker.Addrs(), processors.Consumption{
		Group: "readers", Topics: []string{"lines"},
		Handle: func(_ context.Context, r processors.Inbound) error {
			fmt.Println(string(r.Key), "has", string(r.Value), "and the id", string(r.Header(topics.HeaderID)))
			stop()
			return nil
		},
	})
	fmt.Println(err)
	// Output:
	// poem has rose is a rose and the id l-1
	// <nil>
}
