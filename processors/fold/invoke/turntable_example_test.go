package invoke_test

import (
	"context"
	"fmt"
	"log"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/fold/invoke"
	"github.com/turntable-streams/turntable/topics"
)

// The group of the table runs beside the agent's other groups.
func ExampleTurnTable() {
	graph, err := invoke.TurnTable("harbor", invoke.TurnTableConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(graph.Group())
	for _, e := range graph.InputStreams() {
		fmt.Println("in:", e.Topic())
	}
	fmt.Println("table:", graph.GroupTable().Topic())
	// Output:
	// harbor-invoke-turns
	// in: harbor-agent-events
	// in: harbor-message-input
	// in: harbor-message-output
	// in: harbor-batch-messages
	// in: harbor-session-control
	// table: harbor-invoke-turns-table
}

// A process that runs the group and answers /invoke from its table. The table is compact and in Kafka, so the processes that
// answer need not be those that run the group.
func ExamplePipelineConfig_turnTable() {
	brokers := []string{"localhost:9092"}
	catalog, err := topics.For("support", topics.WithEvents(), topics.WithTurns())
	if err != nil {
		log.Fatal(err)
	}
	graph, err := invoke.TurnTable("support", invoke.TurnTableConfig{})
	if err != nil {
		log.Fatal(err)
	}
	table, err := processors.New(brokers, graph, processors.WithTopics(catalog))
	if err != nil {
		log.Fatal(err)
	}
	publisher, err := processors.NewPublisher(brokers)
	if err != nil {
		log.Fatal(err)
	}
	pipeline, err := invoke.NewPipeline("support", brokers, publisher, invoke.PipelineConfig{TurnTable: true})
	if err != nil {
		log.Fatal(err)
	}
	go func() { log.Print(table.Run(context.Background())) }()
	log.Print(pipeline.Run(context.Background()))
}
