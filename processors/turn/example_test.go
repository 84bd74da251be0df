package turn_test

import (
	"fmt"
	"time"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn"
)

// The graph is a plain Goka graph; processors.New runs it.
func ExampleGraph() {
	graph, err := turn.Graph("harbor", turn.Config{ThinkTimeout: 2 * time.Minute, Policy: turn.Reject, QueueLimit: 1})
	fmt.Println(graph.Group(), err)

	_, err = turn.Graph("harbor", turn.Config{ToolTimeout: -1})
	fmt.Println(err)
	// Output:
	// harbor-streams <nil>
	// turn: invalid configuration: ToolTimeout is -1ns, want at least 1ms
}

func ExampleConfigFromEnv() {
	env := map[string]string{"ASYNC_TOOL_TIMEOUT_MS": "60000", "THINK_TIMEOUT_MS": "soon"}
	_, err := turn.ConfigFromEnv(func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	})
	fmt.Println(err)
	// Output:
	// turn: bad environment variable: THINK_TIMEOUT_MS: want a whole number from 1 to 4611686018427
}

func ExampleDescribe() {
	var p *processors.Processor // runs turn.Graph
	row, err := p.Get("harbor-s19")
	if err != nil {
		panic(err)
	}
	text, err := turn.Describe(row)
	if err != nil {
		panic(err)
	}
	fmt.Print(text)
}

// Inspect is Describe for programs.
func ExampleInspect() {
	view, err := turn.Inspect("harbor-s19", nil) // the row of a processor or a view
	fmt.Println(view.SessionID, view.Messages, view.Turn == nil, err)
	// Output: harbor-s19 0 true <nil>
}

// A large history is in parts of the row, which the table's topic has as records of their own.
func ExampleHistory() {
	records := map[string][]byte{} // of the table's topic, by key
	parts := map[uint32][]byte{}
	for key, value := range records {
		if session, n, isPart := processors.TableKey(key); isPart && session == "harbor-s19" {
			parts[n] = value
		}
	}
	row, err := turn.TableCodec().Decode(records["harbor-s19"])
	if err != nil {
		fmt.Println(err)
		return
	}
	history, err := turn.History(row, func(n uint32) ([]byte, error) { return parts[n], nil })
	fmt.Println(len(history), err)
	// Output: 0 <nil>
}
