package cut

import (
	"reflect"

	"github.com/lovoo/goka"
)

// Edges are the codecs that callbacks write with.
type Edges struct {
	outputs map[goka.Stream]goka.Codec
	table   goka.Codec // nil: there is no table
}

// EdgesOf returns the edges of a graph. Goka has one codec per topic, that of the edge that was defined last. An output
// whose topic has another edge with a codec of another type is therefore left out, and so are loop and table, which are
// not outputs.
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

// encode returns a value's bytes; ok is false for a topic that is not an output, which Goka then reports. A nil value is a
// tombstone.
func (e Edges) encode(topic goka.Stream, value any) (raw []byte, ok bool, err error) {
	c := e.outputs[topic]
	if c == nil || value == nil {
		return nil, c != nil, nil
	}
	raw, err = c.Encode(value)
	return raw, true, err
}
