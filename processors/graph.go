package processors

import (
	"reflect"
	"slices"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/store"
)

// checkGraph rejects graphs that Goka accepts, or panics on, and that would fail at the first record.
func (o *options) checkGraph(graph *goka.GroupGraph) {
	if graph == nil {
		o.refuse("graph: nil")
		return
	}
	if graph.Group() == "" {
		o.refuse("graph: empty group name")
	}
	if err := graph.Validate(); err != nil {
		o.refuse("graph: %w", err)
		return
	}
	// Goka has one codec per topic, that of the later edge, and passes its values to the callbacks of both.
	codecs := map[string]reflect.Type{}
	for _, e := range graph.AllEdges() {
		if e.Codec() == nil { // a visitor
			continue
		}
		kind := reflect.TypeOf(e.Codec())
		if other, ok := codecs[e.Topic()]; ok && other != kind {
			o.refuse("topic %s has edges with different codecs, %s and %s", e.Topic(), other, kind)
		}
		codecs[e.Topic()] = kind
	}
	if n := len(repartitioned(sourcesOf(graph), nil)); n > 0 && n == len(graph.InputStreams()) {
		o.refuse("graph: all inputs are Repartitioned, want one that is not: it has the number of partitions of the table")
	}
	o.checkNames(graph)
	if o.catalog != nil && !slices.Contains(o.catalog.Groups(), graph.Group()) {
		o.refuse("WithTopics: catalog of group %s, graph of group %s", o.catalog.Group(), graph.Group())
	}
	o.checkTopics(graph)
	if o.catalog == nil && len(o.specs) == 0 && o.partitions > 0 {
		o.refuse("WithPartitions: nothing is created without WithTopics or WithTopicSpecs")
	}
}

// checkNames rejects a graph whose edges have the names of topics that New adds.
func (o *options) checkNames(graph *goka.GroupGraph) {
	letters, own := o.deadLetters, string(deadLetterStream(graph.Group()))
	virtual := store.TimerTopic(string(graph.Group()))
	if letters == virtual {
		o.refuse("dead-letter topic %s has the name of the group's timer", letters)
	}
	output := map[goka.Edge]bool{}
	for _, e := range graph.OutputStreams() {
		output[e] = true
	}
	for _, e := range graph.AllEdges() {
		switch {
		case e.Codec() == nil:
		case e.Topic() == letters && (letters != own || !output[e]):
			o.refuse("dead-letter topic %s is another edge of the graph", letters)
		case e.Topic() == virtual:
			o.refuse("topic %s has the name of the group's timer, which is added by itself", virtual)
		}
	}
}

// bindGraph returns a copy of the graph whose edges use the settings: inputs and loop as Edges makes them, the dead-letter
// topic under its configured name, and a timer if the table has deadlines. Edges that Edges did not make are unchanged.
// Inputs that are repartitioned are not in the copy, because Goka does not read them.
func bindGraph(graph *goka.GroupGraph, s *settings) *goka.GroupGraph {
	inputs := sourcesOf(graph)
	timed, hasDeadlines := timedOf(graph)
	if len(inputs) == 0 && !hasDeadlines {
		return graph
	}

	late := lateTopics(graph, inputs)
	bound := map[string]bool{string(deadLetterStream(graph.Group())): true}
	for _, in := range inputs {
		bound[in.in.name()] = true
	}
	var edges []goka.Edge
	for _, e := range graph.InputStreams() {
		if !bound[e.Topic()] {
			edges = append(edges, e)
		}
	}
	switch loop := graph.LoopStream(); {
	case len(inputs) > 0:
		moved := repartitioned(inputs, s)
		edges = append(edges, slices.DeleteFunc(bindEdges(inputs, s, late), func(e goka.Edge) bool {
			return moved[e.Topic()] != nil
		})...)
	case loop != nil:
		edges = append(edges, loop)
	}
	if hasDeadlines {
		edges = append(edges, timerEdge(graph.Group(), timed, s))
	}
	return goka.DefineGroup(graph.Group(), append(edges, otherEdges(graph, s, late)...)...)
}

// sourcesOf returns the inputs of a graph that Input made.
func sourcesOf(graph *goka.GroupGraph) []Source {
	if loop := graph.LoopStream(); loop != nil {
		if c, ok := loop.Codec().(loopCodec); ok {
			return c.inputs
		}
	}
	return nil
}

// otherEdges returns the edges without callbacks of this package: outputs, tables, visitors.
func otherEdges(graph *goka.GroupGraph, s *settings, late map[string]bool) []goka.Edge {
	edges := []goka.Edge{DeadLetters(graph.Group())}
	if edges[0].Topic() != string(s.deadLetters) {
		edges[0] = goka.Output(s.deadLetters, edges[0].Codec())
	}
	made := map[goka.Edge]bool{graph.LoopStream(): true, graph.GroupTable(): true}
	for _, e := range graph.InputStreams() {
		made[e] = true
	}
	for _, e := range graph.OutputStreams() {
		if late[e.Topic()] { // Goka has one codec per topic
			made[e] = true
			edges = append(edges, goka.Output(goka.Stream(e.Topic()), lateCodec{e.Codec()}))
		}
	}
	for _, e := range graph.AllEdges() {
		if !made[e] && e.Topic() != string(deadLetterStream(graph.Group())) {
			edges = append(edges, e)
		}
	}
	if table := graph.GroupTable(); table != nil {
		// Goka writes the group's name into this edge: another graph may be reading it.
		edges = append(edges, goka.Persist(table.Codec()))
	}
	return edges
}

// writtenBy returns the outputs of a graph without the dead-letter topic, and its table.
func writtenBy(graph *goka.GroupGraph, deadLetters string) (topics []string) {
	for _, out := range graph.OutputStreams() {
		if name := out.Topic(); name != deadLetters && name != string(deadLetterStream(graph.Group())) {
			topics = append(topics, name)
		}
	}
	if graph.GroupTable() != nil {
		topics = append(topics, string(goka.GroupTable(graph.Group())))
	}
	return topics
}

func timedOf(graph *goka.GroupGraph) (Timed, bool) {
	table := graph.GroupTable()
	if table == nil {
		return nil, false
	}
	timed, ok := table.Codec().(Timed)
	return timed, ok
}

func timerEdge(group goka.Group, timed Timed, s *settings) goka.Edge {
	return goka.Input(goka.Stream(store.TimerTopic(string(group))), store.DueCodec{}, func(ctx goka.Context, msg any) {
		timed.OnDeadline(s.bind(ctx), msg.(Due)) // its codec decodes to nothing else
	})
}
