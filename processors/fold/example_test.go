package fold_test

import (
	"fmt"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/fold"
)

// The graph is a plain Goka graph; processors.New runs it.
func ExampleGraph() {
	graph, err := fold.Graph("harbor", fold.Config{ThinkResponses: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(graph.Group())
	for _, e := range graph.OutputStreams() {
		fmt.Println("out:", e.Topic())
	}
	// Output:
	// harbor-fold-streams
	// out: harbor-fold-streams-dlq
	// out: harbor-batch-messages
	// out: harbor-think-request-response
	// out: harbor-think-dlq
}

func ExampleDescribe() {
	var p *processors.Processor // runs fold.Graph
	row, err := p.Get("harbor-s19")
	if err != nil {
		panic(err)
	}
	text, err := fold.Describe(row)
	if err != nil {
		panic(err)
	}
	fmt.Print(text)
}
