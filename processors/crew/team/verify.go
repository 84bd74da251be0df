package team

import (
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// Verify checks that the inputs of a crew, all of them in the order of their offsets, make its row in the table, nil for none. It
// returns the events that the inputs make, which are those in crew-events. Give it the options of Graph. The error names the
// fields that differ.
func Verify(name, key string, row *State, inputs []processors.Inbound, opts ...Option) ([]topics.CrewEvent, error) {
	g, err := groupOf(name, opts)
	if err != nil {
		return nil, err
	}
	if row == nil {
		return g.Verify(key, nil, inputs)
	}
	return g.Verify(key, &row, inputs)
}
