package processortest_test

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// This file is the topology under test. The group tally sums additions by key; a deadline closes a count that has not
// changed for ten seconds. The group journal turns counts into text lines.

type (
	addition struct {
		By   int    `json:"by"`
		Loop string `json:"loop,omitzero"` // a key to send the addition to through the loop topic
		Then string `json:"then,omitzero"` // "fail" or "panic"
	}
	count struct {
		N         int    `json:"n"`
		Closed    bool   `json:"closed,omitzero"`
		Timestamp string `json:"timestamp"`
	}
	row struct {
		N      int      `json:"n"`
		Seen   []string `json:"seen"` // IDs of the additions that were counted
		RestMS int64    `json:"rest_ms"`
	}
)

const (
	rest    = 10 * time.Second
	tally   = goka.Group("tally")
	journal = goka.Group("journal")
	letters = "tally-dlq"
)

var (
	additions = topics.New(topics.Spec{Name: "additions"}, codec.JSON[addition]())
	counts    = topics.New(topics.Spec{Name: "counts"}, codec.JSON[count]())
	lines     = topics.New(topics.Spec{Name: "lines"}, codec.String())

	errRequested = errors.New("requested failure")
)

// rowCodec is a table codec whose rows have a deadline.
type rowCodec struct{ codec.Codec[row] }

func newRowCodec() rowCodec { return rowCodec{codec.JSON[row]()} }

func (c rowCodec) Deadline(raw []byte) (int64, bool) {
	d := c.Unmarshal(raw)
	return d.Value.RestMS, d.Err == nil && d.Value.RestMS > 0
}

func (c rowCodec) OnDeadline(ctx goka.Context, due processors.Due) {
	r, ok := rowOf(ctx)
	if !ok || r.RestMS != due.At.UnixMilli() {
		return
	}
	last := count{N: r.N, Closed: true, Timestamp: stamp(ctx)}
	ctx.Emit(counts.Stream(), ctx.Key(), last, id(ctx, "closed/%d", r.RestMS))
	ctx.Delete()
}

// tallyGraph counts each addition once.
func tallyGraph() *goka.GroupGraph {
	return goka.DefineGroup(tally,
		goka.Input(additions.Stream(), additions.Codec(), add),
		goka.Loop(additions.Codec(), add),
		goka.Persist(newRowCodec()),
		goka.Output(counts.Stream(), counts.Codec()),
		goka.Output(letters, codec.Bytes()),
	)
}

func add(ctx goka.Context, msg any) {
	in := msg.(codec.Decoded[addition])
	switch {
	case in.Err != nil:
		ctx.Emit(letters, ctx.Key(), in.Raw, goka.WithCtxEmitHeaders(ctx.Headers().Merged(goka.Headers{
			"error.reason": []byte("poison"), "error.source.offset": fmt.Append(nil, ctx.Offset()),
		})))
		return
	case in.Tombstone():
		ctx.Delete()
		return
	case in.Value.Loop != "":
		ctx.Loopback(in.Value.Loop, addition{By: in.Value.By}, id(ctx, "%s/%d", ctx.Topic(), ctx.Offset()))
		return
	case in.Value.Then == "fail":
		ctx.Fail(errRequested)
	case in.Value.Then == "panic":
		panic("requested panic")
	}
	cause := string(ctx.Headers()[topics.HeaderID])
	if cause == "" {
		cause = fmt.Sprintf("%s/%d", ctx.Topic(), ctx.Offset())
	}
	r, _ := rowOf(ctx)
	if slices.Contains(r.Seen, cause) {
		return
	}
	r.N, r.Seen = r.N+in.Value.By, append(r.Seen, cause)
	r.RestMS = runtimeapi.Now(ctx).Add(rest).UnixMilli()
	ctx.Emit(counts.Stream(), ctx.Key(), count{N: r.N, Timestamp: stamp(ctx)}, id(ctx, "%s", cause))
	ctx.SetValue(r)
}

// journalGraph has no table, so it repeats its outputs when its inputs are redelivered.
func journalGraph() *goka.GroupGraph {
	return goka.DefineGroup(journal,
		goka.Input(counts.Stream(), counts.Codec(), func(ctx goka.Context, msg any) {
			c := msg.(codec.Decoded[count]).Value
			line := fmt.Sprintf("%s has %d", ctx.Key(), c.N)
			if c.Closed {
				line += " for good"
			}
			ctx.Emit(lines.Stream(), ctx.Key(), line, goka.WithCtxEmitHeaders(ctx.Headers()))
		}),
		goka.Output(lines.Stream(), lines.Codec()),
	)
}

// naiveGraph counts a redelivered addition twice.
func naiveGraph() *goka.GroupGraph {
	return goka.DefineGroup("naive",
		goka.Input(additions.Stream(), additions.Codec(), func(ctx goka.Context, msg any) {
			r, _ := rowOf(ctx)
			r.N += msg.(codec.Decoded[addition]).Value.By
			ctx.Emit(counts.Stream(), ctx.Key(), count{N: r.N})
			ctx.SetValue(r)
		}),
		goka.Persist(codec.JSON[row]()),
		goka.Output(counts.Stream(), counts.Codec()),
	)
}

func rowOf(ctx goka.Context) (row, bool) {
	if d, ok := ctx.Value().(codec.Decoded[row]); ok {
		return d.Value, true
	}
	return row{}, false
}

func stamp(ctx goka.Context) string { return runtimeapi.Now(ctx).UTC().Format(time.RFC3339Nano) }

func id(ctx goka.Context, format string, args ...any) goka.ContextOption {
	name := fmt.Sprintf("%s/%s/", ctx.Group(), ctx.Key()) + fmt.Sprintf(format, args...)
	return goka.WithCtxEmitHeaders(goka.Headers{topics.HeaderID: []byte(name)})
}
