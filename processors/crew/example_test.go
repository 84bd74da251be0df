package crew_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/processors/crew"
)

// A program runs the three groups, and both groups of package gate.
func ExampleGraphs() {
	graphs, err := crew.Graphs("shipyard", crew.Config{MaxAgents: 12, PermissionTimeout: 2 * time.Minute})
	if err != nil {
		panic(err)
	}
	for _, g := range graphs {
		// Pass it to processors.New.
		fmt.Println(g.Group(), "reads", strings.Join(g.InputStreams().Topics(), ", "))
	}
	// Output:
	// shipyard-crew-agents reads shipyard-crew-agent-inputs, shipyard-gate-outcomes
	// shipyard-crews reads shipyard-crew-inputs
	// shipyard-crew-repositories reads shipyard-crew-repository-inputs
}
