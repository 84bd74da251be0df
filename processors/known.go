package processors

import (
	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

// Known leaves out records of which their bytes tell that handling them would do nothing, before they are decoded: where
// known returns true, the record counts as handled. It is asked about values whose record's key is a session id that
// belongs to the partition; not about tombstones, and not about records that came through the loop topic. Under a plain
// goka.NewProcessor values are decoded nevertheless.
//
// known has the context that the handler gets where it returns false, may read the row, and must have no effects. raw is
// valid during the call. A panic of it is one of the handler.
func Known[T any](known func(c *Context, raw []byte) bool) EdgeOption[T] {
	return func(in *input[T]) { in.known = known }
}

// isKnown reports whether nothing is left to be done for a record.
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

// lateCodec is the codec of a topic whose edge decodes the values itself, once it has asked whether it must.
type lateCodec struct{ goka.Codec }

// undecoded is a value's bytes.
type undecoded []byte

// Decode implements goka.Codec.
func (c lateCodec) Decode(raw []byte) (any, error) {
	if raw == nil {
		return c.Codec.Decode(nil)
	}
	return undecoded(raw), nil
}

// lateTopics are those of screened inputs. Goka has one codec for each topic: one that is read as a table as well is
// none of them.
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
