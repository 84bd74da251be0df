package agent

import (
	"fmt"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// Verify checks that the inputs of an agent, all of them in the order of their offsets, make its row in the table, nil for none. It
// returns the events that the inputs make, which are those in crew-events. Give it the options of Graph. The error names the
// fields that differ.
func Verify(name, key string, row *State, inputs []processors.Inbound, opts ...Option) ([]topics.CrewEvent, error) {
	catalog, err := topics.For(name)
	if err != nil {
		return nil, fmt.Errorf("crew agent: %w", err)
	}
	r, err := rulesOf(opts)
	if err != nil {
		return nil, err
	}
	if row == nil {
		return groupOf(catalog, r).Verify(key, nil, inputs)
	}
	return groupOf(catalog, r).Verify(key, &row, inputs)
}
