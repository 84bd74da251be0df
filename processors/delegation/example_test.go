package delegation_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delegation"
	"github.com/turntable-streams/turntable/topics"
)

// Two agents: front may hand off tasks to research. Both have a group. Their turns run with turn.Config.Channels.
func ExampleGraph() {
	var running sync.WaitGroup
	for agent, other := range map[string]string{"front": "research", "research": "front"} {
		catalog, err := topics.For(agent, topics.WithChannels())
		if err != nil {
			log.Fatal(err)
		}
		graph, err := delegation.Graph(agent, delegation.Config{Agents: []string{other}})
		if err != nil {
			log.Fatal(err)
		}
		p, err := processors.New([]string{"localhost:9092"}, graph, processors.WithTopics(catalog))
		if err != nil {
			log.Fatal(err)
		}
		running.Go(func() { log.Print(p.Run(context.Background())) })
	}
	running.Wait()
}

// The definitions of the tools for a model. They can be converted to think.Tool.
func ExampleTools() {
	for _, tool := range delegation.Tools("research") {
		fmt.Println(tool.Name)
	}
	// Output:
	// agent_send_async
	// agent_cancel
}
