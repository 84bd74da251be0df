package store

import (
	"slices"

	"github.com/lovoo/goka"
)

// WithTimerEdge returns the graph with the virtual timer topic as an additional input if the codec of its table is Timed: Goka
// needs the edge for its callback and its statistics. A graph that already has the edge, or that has no deadlines, is
// returned unchanged; timed is nil if it has no deadlines. A topic that is both input and output keeps the output's codec,
// as in Goka.
func WithTimerEdge(graph *goka.GroupGraph) (with *goka.GroupGraph, timed Timed) {
	table := graph.GroupTable()
	if table == nil {
		return graph, nil
	}
	timed, ok := table.Codec().(Timed)
	if !ok {
		return graph, nil
	}
	topic := TimerTopic(string(graph.Group()))
	if slices.Contains(graph.InputStreams().Topics(), topic) {
		return graph, timed
	}
	edge := goka.Input(goka.Stream(topic), DueCodec{}, func(ctx goka.Context, message any) {
		timed.OnDeadline(ctx, message.(Due)) // DueCodec always decodes to a Due
	})
	return goka.DefineGroup(graph.Group(), append(graph.AllEdges(), edge)...), timed
}
