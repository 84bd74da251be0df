package processors

import (
	"fmt"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/topics"
)

// Input binds a topic to its handler. The handler gets values and tombstones under a valid session ID (see CheckSession),
// in the partition that the session belongs to. Records under another key or in another partition, and those of a topic
// that is Repartitioned, are sent through the loop topic first. All other records are dead-lettered.
func Input[T any](t topics.Topic[T], h Handler[T], opts ...EdgeOption[T]) Source {
	in := &input[T]{topic: t, handler: h}
	for _, opt := range opts {
		opt(in)
	}
	return Source{in}
}

// Edges returns the Goka edges of a group's inputs: one input edge each, the loop topic and the dead-letter topic. Add the
// edges of the table and the outputs:
//
//	edges := processors.Edges(group, inputs...)
//	graph := goka.DefineGroup(group, append(edges, goka.Persist(rows), goka.Output(answers, c))...)
func Edges(group goka.Group, inputs ...Source) []goka.Edge {
	return append(bindEdges(inputs, defaults(group), nil), DeadLetters(group))
}

func bindEdges(inputs []Source, s *settings, late map[string]bool) []goka.Edge {
	edges := make([]goka.Edge, 0, len(inputs)+2)
	for _, in := range inputs {
		edges = append(edges, in.in.edge(s, late[in.in.name()]))
	}
	return append(edges, loopEdge(inputs, s))
}

func (in *input[T]) edge(s *settings, late bool) goka.Edge {
	var c goka.Codec = in.topic.Codec()
	if late {
		c = lateCodec{c}
	}
	return goka.Input(in.topic.Stream(), c, func(ctx goka.Context, msg any) { in.receive(ctx, s, msg) })
}

// receive is the callback of the input edge.
func (in *input[T]) receive(ctx goka.Context, s *settings, msg any) {
	if hasEnded(ctx) {
		return
	}
	d, late, ok := decoded[T](msg)
	c := newContext(ctx, s, d.Raw)
	r := &c.record
	r.confidential = in.secret
	if !ok {
		fail(ctx, r.fail(StageDecode, fmt.Errorf("%w: got %T", ErrType, msg)))
	}
	if in.isKnown(c) {
		return
	}
	if late {
		d = in.topic.Codec().Unmarshal(d.Raw)
	}
	if d.Err != nil {
		deadLetter(ctx, c, StageDecode, d.Err)
		return
	}
	session := in.sessionOf(r, d)
	if err := CheckSession(session); err != nil {
		deadLetter(ctx, c, StageSession, err)
		return
	}
	if session != r.key || !runtimeapi.Owns(ctx, session) {
		reroute(ctx, c, session)
		return
	}
	in.handle(c, d)
}

func (in *input[T]) rerouted(ctx goka.Context, c *Context) {
	d := in.topic.Codec().Unmarshal(c.record.raw)
	if d.Err != nil { // an older or newer version of the program could decode it
		deadLetter(ctx, c, StageDecode, d.Err)
		return
	}
	in.handle(c, d)
}

func (in *input[T]) handle(c *Context, d codec.Decoded[T]) {
	decoded := true
	perform(c, StageHandle, func(c *Context) error {
		if !decoded { // the failed attempt may have modified the value
			d = in.topic.Codec().Unmarshal(c.record.raw)
		}
		decoded = false
		return in.handler(c, d)
	})
}
