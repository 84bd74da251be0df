package processors

import (
	"errors"
	"fmt"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/topics"
)

// ErrType is the cause of a record error where Goka handed over a value of another type than the topic's: two edges of
// one topic have different codecs, and Goka uses the later one's for both.
var ErrType = errors.New("processors: value is not of the topic's type")

// Handler handles one record: a value or a tombstone, never poison. It runs in the partition's goroutine, one record at
// a time, and must not wait for anything. After a crash it runs again, with the same record and possibly the same row:
// what it does must not depend on how often it ran. in.Raw is valid during the call.
//
// Where it returns an error the processor stops, restarts and hands the record over again: that is for what may pass. A
// bad record goes to Context.DeadLetter. A panic, and ErrTooLarge, send the record to the dead-letter topic.
type Handler[T any] func(c *Context, in codec.Decoded[T]) error

// Source is an input topic bound to its handler. Edges makes Goka's edges of it.
type Source struct{ in source }

type source interface {
	name() string
	confidential() bool
	screened() bool
	// edge is the input edge. Where it is late, Goka leaves the values undecoded.
	edge(s *settings, late bool) goka.Edge
	// rerouted takes a record that came through the loop topic.
	rerouted(ctx goka.Context, c *Context)
}

// EdgeOption configures an Input of T.
type EdgeOption[T any] func(*input[T])

// KeyedBy says where the session id stands in a value of the topic. A record under another key then goes through the
// group's loop topic to the right one; a value without a session id (nil) is dead-lettered. Without this option, and
// for tombstones, the record's key is the session id.
func KeyedBy[T any](session func(value T) *string) EdgeOption[T] {
	return func(in *input[T]) { in.session = session }
}

// Confidential keeps what a topic's records say out of the dead-letter topic, whose readers may be others: of a record
// that goes there only key, coordinates and reason do, and the size of its value as error.truncated. For topics whose
// records hold secrets.
func Confidential[T any]() EdgeOption[T] {
	return func(in *input[T]) { in.secret = true }
}

// Input binds a topic to its handler. The handler gets the values and tombstones of records that have a session id and
// stand in the partition where it belongs; other records go to the dead-letter topic, or through the loop topic.
func Input[T any](t topics.Topic[T], h Handler[T], opts ...EdgeOption[T]) Source {
	in := &input[T]{topic: t, handler: h}
	for _, opt := range opts {
		opt(in)
	}
	return Source{in}
}

// Edges are the edges of a group's inputs: one input edge each, the edge of the loop topic, and that of the dead-letter
// topic. Table and outputs come beside them:
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

type input[T any] struct {
	topic   topics.Topic[T]
	handler Handler[T]
	session func(T) *string // nil: the key
	secret  bool
	known   func(*Context, []byte) bool // nil: none is
}

func (in *input[T]) name() string       { return in.topic.Name() }
func (in *input[T]) confidential() bool { return in.secret }
func (in *input[T]) screened() bool     { return in.known != nil }

func (in *input[T]) edge(s *settings, late bool) goka.Edge {
	var c goka.Codec = in.topic.Codec()
	if late {
		c = lateCodec{c}
	}
	return goka.Input(in.topic.Stream(), c, func(ctx goka.Context, msg any) { in.receive(ctx, s, msg) })
}

// receive is the callback of the input edge.
func (in *input[T]) receive(ctx goka.Context, s *settings, msg any) {
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
	if d.Err != nil { // it was no poison to the version that sent it here
		deadLetter(ctx, c, StageDecode, d.Err)
		return
	}
	in.handle(c, d)
}

func (in *input[T]) handle(c *Context, d codec.Decoded[T]) {
	perform(c, StageHandle, func(c *Context) error { return in.handler(c, d) })
}

func (in *input[T]) sessionOf(r *record, d codec.Decoded[T]) string {
	if in.session == nil || d.Tombstone() {
		return r.key
	}
	if id := in.session(d.Value); id != nil {
		return *id
	}
	return ""
}

// decoded takes what Goka hands to a callback. A bare nil is a tombstone of a processor with goka.NilProcess. What is
// late has nothing but its bytes yet.
func decoded[T any](msg any) (d codec.Decoded[T], late, ok bool) {
	switch v := msg.(type) {
	case nil:
		return d, false, true
	case undecoded:
		return codec.Decoded[T]{Raw: v}, true, true
	default:
		d, ok = msg.(codec.Decoded[T])
		return d, false, ok
	}
}
