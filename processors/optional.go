package processors

import (
	"sync/atomic"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/topics"
)

// OptionalOutput returns an output that not every deployment of a graph needs: New accepts a catalog that does not create the
// topic. created reports whether the catalog of WithTopics creates it; it is false before New, and without WithTopics. The
// graph must not write to a topic of which it does not know that it exists.
func OptionalOutput[T any](t topics.Topic[T]) (edge goka.Edge, created func() bool) {
	c := optionalCodec{t.Codec(), new(atomic.Bool)}
	return goka.Output(t.Stream(), c), c.created.Load
}

type optionalCodec struct {
	goka.Codec
	created *atomic.Bool
}

// checkEvents rejects a graph that needs the topic of the events of a catalog that does not create it.
func (o *options) checkEvents(graph *goka.GroupGraph) {
	if o.catalog == nil {
		return
	}
	events := o.catalog.AgentEvents
	for _, e := range graph.AllEdges() {
		if e.Codec() == nil || e.Topic() != events.Name() {
			continue
		}
		if c, ok := e.Codec().(optionalCodec); ok {
			c.created.Store(events.Spec().Created)
		} else if !events.Spec().Created {
			o.refuse("WithTopics: the graph needs topic %s, which the catalog does not create: topics.WithEvents is missing",
				e.Topic())
			return
		}
	}
}
