package processors

import (
	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

// Known skips records that were already handled, judged by their raw bytes, before they are decoded. If known returns
// true, the record counts as handled. known is called for values whose key is a session ID that belongs to the partition;
// not for tombstones, and not for records that were sent through the loop topic. Under a plain goka.NewProcessor values
// are decoded before known is called.
//
// known gets the Context that the handler gets if known returns false. It may read the row and must have no effects. raw
// is valid only during the call. A panic of known is treated as a panic of the handler.
func Known[T any](known func(c *Context, raw []byte) bool) EdgeOption[T] {
	return func(in *input[T]) { in.known = known }
}

// isKnown reports whether a record needs no handling: known returned true, or panicked and the record is dead-lettered.
func (in *input[T]) isKnown(c *Context) (known bool) {
	ctx, r := c.ctx, &c.record
	if in.known == nil || r.raw == nil || CheckSession(r.key) != nil || !runtimeapi.Owns(ctx, r.key) {
		return false
	}
	panicked, _ := run(c, func(c *Context) error {
		known = in.known(c, r.raw)
		return nil
	})
	switch {
	case c.thrown != nil:
		c.end()
		panic(c.thrown)
	case panicked != nil:
		c.end()
		deadLetter(ctx, c, StageHandle, panicked)
		return true
	case known:
		c.end()
	}
	return known
}

// lateCodec is the codec of a topic whose edge decodes the values itself, after it has called known.
type lateCodec struct{ goka.Codec }

// Decode implements goka.Codec.
func (c lateCodec) Decode(raw []byte) (any, error) {
	if raw == nil {
		return c.Codec.Decode(nil)
	}
	return undecoded(raw), nil
}

// lateTopics returns the topics of inputs with the option Known. Goka has one codec per topic, so a topic that is also
// read as a table is not included.
func lateTopics(graph *goka.GroupGraph, inputs []Source) map[string]bool {
	late := map[string]bool{}
	for _, in := range inputs {
		if in.in.screened() {
			late[in.in.name()] = true
		}
	}
	for _, tables := range []goka.Edges{graph.JointTables(), graph.LookupTables()} {
		for _, e := range tables {
			delete(late, e.Topic())
		}
	}
	return late
}
