// Minimal runs the turns of one agent until Ctrl-C. It is the program of the README.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	catalog, err := topics.For("support") // the topics of the agent "support"
	if err != nil {
		log.Fatal(err)
	}
	graph, err := turn.Graph("support") // a plain *goka.GroupGraph
	if err != nil {
		log.Fatal(err)
	}
	processor, err := processors.New([]string{"localhost:9092"}, graph,
		processors.WithTopics(catalog), // create what is missing
		processors.WithStorage(processors.LevelDB("/var/lib/support")),
	)
	if err != nil {
		log.Fatal(err)
	}
	if err := processor.Run(ctx); err != nil { // returns when ctx ends, after a drain
		log.Fatal(err)
	}
}
