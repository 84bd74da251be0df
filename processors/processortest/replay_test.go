package processortest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/topics"
)

func TestReplayOfAnIdempotentTopologyChangesNothing(t *testing.T) {
	d := processortest.New(t, start, tallyGraph(), journalGraph())
	in := processortest.In(d, additions)
	in.Pipe("a", addition{By: 1})
	in.Pipe("a", addition{By: 2, Loop: "b"})
	in.PipeRaw("a", []byte("?"))
	d.Advance(time.Second)
	in.Pipe("a", addition{By: 4})
	want := processortest.Out(d, lines).Drain()
	require.Len(t, want, 3)
	require.Equal(t, 1, processortest.OutRaw(d, letters).Len())

	require.NoError(t, d.Replay())
	require.NoError(t, d.Replay(), "a second replay")
	require.Zero(t, processortest.Out(d, lines).Len(), "repeats are not outputs to read")
	require.Len(t, processortest.OutRaw(d, letters).Drain(), 1)

	in.Pipe("a", addition{By: 8})
	require.Equal(t, "a has 13", processortest.Out(d, lines).Next().Value, "the test can continue after a replay")
}

func TestReplayDetectsATopologyThatCountsTwice(t *testing.T) {
	var err error
	tb := runFake(func(tb processortest.TB) {
		d := processortest.New(tb, start, naiveGraph())
		processortest.In(d, additions).Pipe("a", addition{By: 1})
		processortest.In(d, additions).Pipe("b", addition{By: 1})
		processortest.Out(d, counts).Drain()
		err = d.Replay()
	})
	require.Empty(t, tb.Errors())
	require.ErrorIs(t, err, processortest.ErrReplay)
	require.ErrorContains(t, err, `group naive, row "a"`)
	require.ErrorContains(t, err, `group naive, row "b"`)
	require.ErrorContains(t, err, `topic counts, key "a", id "" does not repeat an earlier output`)
	require.Contains(t, tb.Log(), `{\"n\":2,\"timestamp\":\"\"}`)
}

// stamped emits one output per record, with the given value and headers.
func stamped(value func(ctx goka.Context) string, headers func(ctx goka.Context) goka.Headers) *goka.GroupGraph {
	return goka.DefineGroup("stamped",
		goka.Input("in", codec.Bytes(), func(ctx goka.Context, _ any) {
			ctx.Emit("out", ctx.Key(), value(ctx), goka.WithCtxEmitHeaders(headers(ctx)))
		}),
		goka.Output("out", codec.String()))
}

func TestReplayComparesOutputsByIDAndIgnoresTimestamps(t *testing.T) {
	type header func(goka.Context) goka.Headers
	runs := 0
	ids := func(of ...string) header {
		return func(goka.Context) goka.Headers {
			runs++
			return goka.Headers{topics.HeaderID: []byte(of[min(runs, len(of))-1]), "run": {byte(runs)}}
		}
	}
	for what, c := range map[string]struct {
		value   string // %s is the time of the run
		headers header
		differs bool
	}{
		"timestamps":    {`{"timestamp":"%s","in":[{"timestamp":["%[1]s"],"n":12345678901234567890}]}`, ids("x"), false},
		"other member":  {`{"at":"%s"}`, ids("x"), true},
		"other number":  {`{"n":12345678901234567890,"at":"%s"}`, ids("x"), true},
		"not an object": {`"timestamp%s"`, ids("x"), true},
		"not JSON":      {`{"timestamp":"%s"} {`, ids("x"), true},
		"new id":        {`{"timestamp":"%s"}`, ids("x", "y"), true},
	} {
		t.Run(what, func(t *testing.T) {
			runs = 0
			value := func(ctx goka.Context) string { return fmt.Sprintf(c.value, stamp(ctx)) }
			d := processortest.New(t, start, stamped(value, c.headers))
			processortest.InRaw(d, "in").Pipe("a", nil)
			require.Len(t, processortest.OutRaw(d, "out").Drain(), 1)
			d.Advance(time.Second)
			err := d.Replay()
			if c.differs {
				require.ErrorIs(t, err, processortest.ErrReplay)
			} else {
				require.NoError(t, err)
			}
		})
	}
}

func TestReplayReportsDeletedRows(t *testing.T) {
	seen := false
	graph := goka.DefineGroup("once",
		goka.Input("in", codec.Bytes(), func(ctx goka.Context, _ any) {
			if seen {
				ctx.Delete()
				return
			}
			seen = true
			ctx.SetValue("here")
		}),
		goka.Persist(codec.String()))
	d := processortest.New(t, start, graph)
	processortest.InRaw(d, "in").Pipe("a", nil)
	require.ErrorContains(t, d.Replay(), `group once, row "a"`)
}
