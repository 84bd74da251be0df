package processortest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/testing/failing"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/topics"
)

func TestGoldenFileContainsTheOutputs(t *testing.T) {
	d := processortest.New(t, start, tallyGraph(), journalGraph())
	in := processortest.In(d, additions)
	in.Pipe("a", addition{By: 1})
	in.Pipe("b", addition{By: 2, Loop: "a"})
	in.PipeRaw("c", []byte("{not json"))
	in.PipeRaw("c", []byte{0xff})
	d.Advance(rest)
	d.Golden("testdata/tally.jsonl")
	require.Empty(t, d.Unread(), "what is in a golden file is read")
}

func TestGoldenFileDistinguishesNullFromEmpty(t *testing.T) {
	d := processortest.New(t, start, goka.DefineGroup("copy",
		goka.Input("in", codec.Bytes(), func(ctx goka.Context, msg any) {
			ctx.Emit("out", ctx.Key(), msg, goka.WithCtxEmitHeaders(ctx.Headers()))
		}),
		goka.Output("out", codec.Bytes())))
	in := processortest.InRaw(d, "in")
	in.Pipe("a", nil)
	in.Pipe("a", []byte{})
	in.Pipe("", []byte("null"))
	in.Pipe("", []byte("text"), processortest.WithNullKey())
	in.Pipe("\xff", []byte("1.0"), processortest.WithHeaders(goka.Headers{"bin": {0xfe}, topics.HeaderID: []byte("i")}))
	d.Golden("testdata/nulls.jsonl")
}

func TestGoldenFileIsWrittenWithTheFlagAndComparedWithout(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "x.jsonl")
	run := func(by ...int) *failing.TB {
		return runFake(func(tb processortest.TB) {
			d := processortest.New(tb, start, tallyGraph())
			for _, n := range by {
				processortest.In(d, additions).Pipe("a", addition{By: n})
			}
			d.Golden(path)
		})
	}
	require.Contains(t, run(1).Errors(), "-processortest.update writes it")

	undo := processortest.SetUpdate(true)
	require.Empty(t, run(1, 2).Errors())
	undo()
	written, err := os.ReadFile(path)
	require.NoError(t, err)

	require.Empty(t, run(1, 2).Errors())
	require.Contains(t, run(1).Errors(), "x.jsonl line 2")
	require.Contains(t, run(1, 3).Errors(), "x.jsonl line 2")
	require.Contains(t, run(1, 2, 3).Errors(), "x.jsonl line 3")
	unchanged, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, written, unchanged)
}

func TestSecondGoldenFileHasOnlyTheLaterOutputs(t *testing.T) {
	dir := t.TempDir()
	defer processortest.SetUpdate(true)()
	d := processortest.New(t, start, tallyGraph())
	for _, name := range []string{"first", "second"} {
		processortest.In(d, additions).Pipe("a", addition{By: 1})
		d.Golden(filepath.Join(dir, name))
	}
	second, err := os.ReadFile(filepath.Join(dir, "second"))
	require.NoError(t, err)
	require.NotContains(t, string(second), "additions/0")
	require.Contains(t, string(second), "additions/1")
}
