package processors_test

import (
	"context"
	"fmt"
	"log"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/embedded"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// Signs of life change nothing: they are not even decoded. What is no JSON would be a dead letter otherwise.
func ExampleKnown() {
	broker, err := embedded.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Close()
	stage := newStage(broker.Addrs(), "readings", "alarms")
	defer stage.Close()

	readings := topics.New(topics.Spec{Name: "readings"}, codec.JSON[int]())
	alarms := topics.New(topics.Spec{Name: "alarms"}, codec.String())
	alive := func(_ *processors.Context, raw []byte) bool { return string(raw) == "alive" }
	watch := func(c *processors.Context, in codec.Decoded[int]) error {
		return processors.EmitWithID(c, alarms, c.Key(), fmt.Sprintf("%d degrees", in.Value), "alarm/"+c.CauseID())
	}
	edges := processors.Edges("watch", processors.Input(readings, watch, processors.Known[int](alive)))
	graph := goka.DefineGroup("watch", append(edges, goka.Output(alarms.Stream(), alarms.Codec()))...)

	p, err := processors.New(broker.Addrs(), graph)
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- p.Run(ctx) }()

	stage.put("readings", "oven-1", "alive")
	stage.put("readings", "oven-1", "240")
	fmt.Println(stage.take())
	stop()
	fmt.Println(<-stopped)
	// Output:
	// oven-1=240 degrees
	// <nil>
}
