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

// Optional implements instance.Optional.
func (optionalCodec) Optional() {}

// checkTopics rejects a graph that needs a topic that its catalog does not create: nothing would ever be read from it, or the
// first record for it would fail. Topics of other agents and those that no catalog creates are not checked.
func (o *options) checkTopics(graph *goka.GroupGraph) {
	if o.catalog == nil {
		return
	}
	created := createdBy(*o.catalog)
	for _, e := range graph.AllEdges() {
		is, ours := created[e.Topic()]
		if c, ok := e.Codec().(optionalCodec); ok {
			c.created.Store(is)
			continue
		}
		if !ours || is {
			continue
		}
		if option := optionFor(o.catalog.Agent, e.Topic()); option != "" {
			o.refuse("WithTopics: the graph needs topic %s, which the catalog does not create: topics.%s is missing", e.Topic(), option)
		}
	}
}

// createdBy says of the topics of a catalog whether it creates them.
func createdBy(c topics.Catalog) map[string]bool {
	created := map[string]bool{}
	for _, s := range c.Specs() {
		created[s.Name] = s.Created
	}
	return created
}

// optionFor returns the name of the option of topics.For with which a catalog creates a topic, or "".
func optionFor(agent, topic string) string {
	for _, o := range []struct {
		name string
		with topics.CatalogOption
	}{
		{"WithEvents", topics.WithEvents()},
		{"WithGates", topics.WithGates()},
		{"WithCompaction", topics.WithCompaction()},
		{"WithDeliveries", topics.WithDeliveries()},
		{"WithChannels", topics.WithChannels()},
		{"WithPeers", topics.WithPeers()},
		{"WithMemoir", topics.WithMemoir()},
		{"WithCosts", topics.WithCosts()},
		{"WithLatencies", topics.WithLatencies()},
		{"WithCrews", topics.WithCrews()},
	} {
		if c, err := topics.For(agent, o.with); err == nil && createdBy(c)[topic] {
			return o.name
		}
	}
	return ""
}
