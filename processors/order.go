package processors

import "github.com/lovoo/goka"

// OrderOutputs makes the callback's outputs wait for one another: an output is sent when all outputs of other topics before it,
// in the order of the calls, are acknowledged. Readers of several topics then also receive them in that order. It costs a
// round trip to the brokers for each change of topic, during which later outputs of the same key wait, but no other keys do.
// The record is not done before. If an output fails, those after it are not sent. OrderOutputs has no effect under a plain
// goka.NewProcessor, nor in package processortest, where outputs have one order. Without OrderOutputs the timestamps of the
// outputs have the order of the calls.
func (c *Context) OrderOutputs() error {
	return c.locked(func(goka.Context) error {
		c.effects.sequence = true
		return nil
	})
}

// hasTopics reports whether the outputs have more than one topic: otherwise none waits for another.
func (e *effects) hasTopics() bool {
	for _, out := range e.outputs {
		if out.stream != e.outputs[0].stream {
			return true
		}
	}
	return false
}
