package cut

import (
	"reflect"

	"github.com/lovoo/goka"
)

// Edges are the codecs by which callbacks write.
type Edges struct {
	outputs map[goka.Stream]goka.Codec
	table   goka.Codec // nil: there is no table
}

// EdgesOf are the edges of a graph. Goka has one codec for each topic, that of the edge that was defined last: an output
// that has another edge with a codec of another type is left out, and so are loop and table, which are no outputs.
func EdgesOf(graph *goka.GroupGraph) Edges {
	e := Edges{outputs: map[goka.Stream]goka.Codec{}}
	for _, out := range graph.OutputStreams() {
		e.outputs[goka.Stream(out.Topic())] = out.Codec()
	}
	for _, other := range graph.AllEdges() {
		topic := goka.Stream(other.Topic())
		if c, ok := e.outputs[topic]; ok && reflect.TypeOf(c) != reflect.TypeOf(other.Codec()) {
			delete(e.outputs, topic)
		}
	}
	if loop := graph.LoopStream(); loop != nil {
		delete(e.outputs, goka.Stream(loop.Topic()))
	}
	if table := graph.GroupTable(); table != nil {
		e.table = table.Codec()
	}
	delete(e.outputs, goka.Stream(goka.GroupTable(graph.Group())))
	return e
}

// encode returns a value's bytes; ok is false for what is no output, which Goka is to say. nil is a tombstone.
func (e Edges) encode(topic goka.Stream, value any) (raw []byte, ok bool, err error) {
	c := e.outputs[topic]
	if c == nil || value == nil {
		return nil, c != nil, nil
	}
	raw, err = c.Encode(value)
	return raw, true, err
}
