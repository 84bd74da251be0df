package processortest_test

import (
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
	require.NoError(t, d.Replay(), "and once more")
	require.Zero(t, processortest.Out(d, lines).Len(), "repeats are not outputs to read")
	require.Len(t, processortest.OutRaw(d, letters).Drain(), 1)

	in.Pipe("a", addition{By: 8})
	require.Equal(t, "a has 13", processortest.Out(d, lines).Next().Value, "the test goes on after a replay")
}

func TestReplayDetectsATopologyThatCountsTwice(t *testing.T) {
	var err error
	tb := runFake(func(tb testing.TB) {
		d := processortest.New(tb, start, naiveGraph())
		processortest.In(d, additions).Pipe("a", addition{By: 1})
		processortest.In(d, additions).Pipe("b", addition{By: 1})
		processortest.Out(d, counts).Drain()
		err = d.Replay()
	})
	require.Empty(t, tb.complaints())
	require.ErrorIs(t, err, processortest.ErrReplay)
	require.ErrorContains(t, err, `group naive, row "a"`)
	require.ErrorContains(t, err, `group naive, row "b"`)
	require.ErrorContains(t, err, `topic counts, key "a", id "" is no repeat`)
	require.Contains(t, tb.log(), `{\"n\":2,\"timestamp\":\"\"}`)
}

// stamped emits what it is told about each record.
func stamped(value func(ctx goka.Context) string, headers func(ctx goka.Context) goka.Headers) *goka.GroupGraph {
	return goka.DefineGroup("stamped",
		goka.Input("in", codec.Bytes(), func(ctx goka.Context, _ any) {
			ctx.Emit("out", ctx.Key(), value(ctx), goka.WithCtxEmitHeaders(headers(ctx)))
		}),
		goka.Output("out", codec.String()))
}

func TestReplayJudgesOutputsByIDAndLeavesOutTimestamps(t *testing.T) {
	runs := 0
	ids := func(format string) func(goka.Context) goka.Headers {
		return func(goka.Context) goka.Headers {
			runs++
			return goka.Headers{topics.HeaderID: []byte(format[:min(runs, len(format))]), "run": {byte(runs)}}
		}
	}
	for what, c := range map[string]struct {
		value   func(goka.Context) string
		headers func(goka.Context) goka.Headers
		differs bool
	}{
		"timestamps": {value: func(ctx goka.Context) string {
			return `{"timestamp":"` + stamp(ctx) + `","in":[{"timestamp":` + string(rune('0'+runs)) + `,"n":12345678901234567890}]}`
		}, headers: ids("x")},
		"other member": {value: func(ctx goka.Context) string { return `{"at":"` + stamp(ctx) + `"}` }, headers: ids("x"), differs: true},
		"no object":    {value: func(ctx goka.Context) string { return `"timestamp` + stamp(ctx) + `"` }, headers: ids("x"), differs: true},
		"no JSON":      {value: func(ctx goka.Context) string { return `{"timestamp":"` + stamp(ctx) + `"} {` }, headers: ids("x"), differs: true},
		"new id":       {value: func(goka.Context) string { return "same" }, headers: ids("xy"), differs: true},
	} {
		t.Run(what, func(t *testing.T) {
			runs = 0
			d := processortest.New(t, start, stamped(c.value, c.headers))
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

func TestReplayFindsRowsThatVanish(t *testing.T) {
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
