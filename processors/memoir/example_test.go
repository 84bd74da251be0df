package memoir_test

import (
	"fmt"
	"strings"

	"github.com/turntable-streams/turntable/processors/memoir"
)

func ExampleGraph() {
	graph, err := memoir.Graph("quay", memoir.Config{})
	if err != nil {
		panic(err)
	}
	// Pass it to processors.New.
	fmt.Println(graph.Group())
	fmt.Println(strings.Join(graph.InputStreams().Topics(), "\n"))
	// Output:
	// quay-memories
	// quay-memoir-lookups
	// quay-memoir-sessions
	// quay-memoir-context
	// quay-memoir-dlq
}
