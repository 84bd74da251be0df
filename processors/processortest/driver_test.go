package processortest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/topics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestTypedRecordsAreConsumedAndEmitted(t *testing.T) {
	d := processortest.New(t, start, tallyGraph())
	in, out := processortest.In(d, additions), processortest.Out(d, counts)

	require.EqualValues(t, 0, in.Pipe("a", addition{By: 2}))
	require.EqualValues(t, 1, in.Pipe("a", addition{By: 3}))

	first := out.Next()
	require.Equal(t, count{N: 2, Timestamp: "2026-03-01T12:00:00Z"}, first.Value)
	require.Equal(t, "a", first.Key)
	require.Equal(t, "tally/a/additions/0", first.ID())
	require.Equal(t, start, first.Timestamp)
	rest := out.Drain()
	require.Len(t, rest, 1)
	require.Equal(t, 5, rest[0].Value.N)
	require.Zero(t, out.Len())
	require.Empty(t, out.Drain())
	require.Empty(t, d.Unread())
}

func TestRedeliveryAtTheSameOffsetChangesNothing(t *testing.T) {
	d := processortest.New(t, start, tallyGraph())
	in, out := processortest.In(d, additions), processortest.Out(d, counts)
	at := in.Pipe("a", addition{By: 2})
	in.PipeAt(at)
	require.Len(t, out.Drain(), 1)
	in.Pipe("a", addition{By: 2})
	require.Equal(t, 4, out.Next().Value.N, "equal bytes at another offset are another record")
}

func TestPoisonIsDeadLetteredAndProcessingContinues(t *testing.T) {
	d := processortest.New(t, start, tallyGraph())
	in, dead := processortest.In(d, additions), processortest.OutRaw(d, letters)

	in.PipeRaw("a", []byte("{not json"), processortest.WithHeaders(goka.Headers{"trace": []byte("7")}))
	in.PipeRaw("a", []byte{})
	in.Pipe("a", addition{By: 1})

	letter := dead.Next()
	require.Equal(t, "{not json", string(letter.Value))
	require.Equal(t, "7", string(letter.Headers["trace"]))
	require.Equal(t, "poison", string(letter.Headers["error.reason"]))
	empty := dead.Next()
	require.False(t, empty.Tombstone(), "zero length is not null")
	require.Empty(t, empty.Raw)
	require.Len(t, processortest.Out(d, counts).Drain(), 1)
}

func TestTombstoneReachesTheCodec(t *testing.T) {
	d := processortest.New(t, start, tallyGraph())
	in, rows := processortest.In(d, additions), processortest.Table(d, tally, newRowCodec())
	in.Pipe("a", addition{By: 2})
	require.Equal(t, []string{"a"}, rows.Keys())
	in.PipeRaw("a", nil)
	require.Empty(t, rows.Keys())
	require.Len(t, processortest.Out(d, counts).Drain(), 1)
}

func TestTablesAreReadAndSeeded(t *testing.T) {
	d := processortest.New(t, start, tallyGraph())
	in, rows := processortest.In(d, additions), processortest.Table(d, tally, newRowCodec())
	rows.Put("a", row{N: 40})
	rows.Put("b", row{N: 1})
	require.Equal(t, []string{"a", "b"}, rows.Keys())
	rows.Delete("b")
	require.Nil(t, rows.Raw("b"))

	in.Pipe("a", addition{By: 2})
	got, ok := rows.Get("a")
	require.True(t, ok)
	require.Equal(t, 42, got.N)
	_, ok = rows.Get("b")
	require.False(t, ok)
	require.Equal(t, 42, processortest.Out(d, counts).Next().Value.N)
}

func TestLoopedRecordIsConsumedUnderItsNewKey(t *testing.T) {
	d := processortest.New(t, start, tallyGraph())
	processortest.In(d, additions).Pipe("a", addition{By: 2, Loop: "b"})
	got := processortest.Out(d, counts).Next()
	require.Equal(t, "b", got.Key)
	require.Equal(t, 2, got.Value.N)
}

func TestOutputOfOneGraphIsInputOfAnother(t *testing.T) {
	d := processortest.New(t, start, journalGraph(), tallyGraph())
	in, out := processortest.In(d, additions), processortest.Out(d, lines)
	in.Pipe("a", addition{By: 1})
	in.Pipe("b", addition{By: 2})
	d.Advance(rest)

	var got []string
	for _, r := range out.Drain() {
		got = append(got, r.Value)
	}
	require.Equal(t, []string{"a has 1", "b has 2", "a has 1 for good", "b has 2 for good"}, got)
	require.Equal(t, 4, processortest.Out(d, counts).Len(), "the test can also read records between graphs")
	require.Empty(t, d.Unread(), "but it need not read them")
}

func TestNullKeyDiffersFromTheEmptyKey(t *testing.T) {
	seen := map[bool]int{}
	graph := goka.DefineGroup("keys",
		goka.Input("keyed", codec.String(), func(ctx goka.Context, _ any) {
			_, null := ctx.Headers()[runtimeapi.HeaderNullKey]
			seen[null]++
			ctx.Emit("copies", ctx.Key(), ctx.Key(), goka.WithCtxEmitHeaders(ctx.Headers().Merged(goka.Headers{
				runtimeapi.HeaderPartition: runtimeapi.PartitionHeader(0),
			})))
		}),
		goka.Output("copies", codec.String()))
	d := processortest.New(t, start, graph)
	in, out := processortest.InRaw(d, "keyed"), processortest.OutRaw(d, "copies")
	in.Pipe("ignored", []byte("x"), processortest.WithNullKey())
	in.Pipe("", []byte("x"))
	require.Equal(t, map[bool]int{true: 1, false: 1}, seen)
	null, empty := out.Next(), out.Next()
	require.True(t, null.NullKey)
	require.False(t, empty.NullKey)
	require.Empty(t, null.Headers, "private headers never reach the broker")
	require.Empty(t, empty.Headers)
}

func TestCallbacksSeeTheTimeOfTheDriver(t *testing.T) {
	type seen struct{ now, at time.Time }
	var got []seen
	graph := goka.DefineGroup("clock",
		goka.Input("ticks", codec.String(), func(ctx goka.Context, _ any) {
			got = append(got, seen{runtimeapi.Now(ctx), ctx.Timestamp()})
			require.True(t, runtimeapi.Owns(ctx, "anything"))
		}))
	d := processortest.New(t, start, graph)
	in := processortest.InRaw(d, "ticks")
	in.Pipe("a", []byte("x"))
	d.Advance(time.Minute)
	in.Pipe("a", []byte("x"), processortest.WithTimestamp(start.Add(-time.Hour)))
	require.Equal(t, []seen{
		{start, start},
		{start.Add(time.Minute), start.Add(-time.Hour)},
	}, got)
	require.Equal(t, start.Add(time.Minute), d.Now())
}

func TestJoinedAndLookedUpTablesHaveCaughtUp(t *testing.T) {
	var got []string
	text := func(v any) string {
		if d, ok := v.(codec.Decoded[string]); ok {
			return d.Value
		}
		return "none"
	}
	graph := goka.DefineGroup("reader",
		goka.Input("asks", codec.String(), func(ctx goka.Context, _ any) {
			got = append(got, text(ctx.Join("names"))+" "+text(ctx.Lookup("limits", "all")))
		}),
		goka.Join("names", codec.String()),
		goka.Lookup("limits", codec.String()))
	d := processortest.New(t, start, graph)
	asks := processortest.InRaw(d, "asks")
	asks.Pipe("a", []byte("x"))
	processortest.InRaw(d, "names").Pipe("a", []byte("ann"))
	processortest.InRaw(d, "limits").Pipe("all", []byte("9"))
	asks.Pipe("a", []byte("x"))
	require.Equal(t, []string{"none none", "ann 9"}, got)
}

func TestTwoReadersMayHaveDifferentCodecs(t *testing.T) {
	var text string
	var raw []byte
	d := processortest.New(t, start,
		goka.DefineGroup("one", goka.Input("shared", codec.String(), func(_ goka.Context, msg any) {
			text = msg.(codec.Decoded[string]).Value
		})),
		goka.DefineGroup("two", goka.Input("shared", codec.Bytes(), func(_ goka.Context, msg any) {
			raw = msg.(codec.Decoded[[]byte]).Value
		})))
	processortest.InRaw(d, "shared").Pipe("a", []byte("x"))
	require.Equal(t, "x", text)
	require.Equal(t, []byte("x"), raw)
}

func TestRecordsAreHandledInTheOrderTheyWereWritten(t *testing.T) {
	var got []string
	note := func(ctx goka.Context, msg any) {
		got = append(got, string(ctx.Topic())+" "+msg.(codec.Decoded[string]).Value)
	}
	fan := goka.DefineGroup("fan",
		goka.Input("source", codec.String(), func(ctx goka.Context, _ any) {
			for _, topic := range []goka.Stream{"z", "a", "m", "z", "a"} {
				ctx.Emit(topic, "k", "from fan")
			}
		}),
		goka.Output("a", codec.String()), goka.Output("m", codec.String()), goka.Output("z", codec.String()))
	sink := goka.DefineGroup("sink",
		goka.Input("a", codec.String(), note), goka.Input("m", codec.String(), note), goka.Input("z", codec.String(), note))
	d := processortest.New(t, start, fan, sink)
	processortest.InRaw(d, "source").Pipe("k", []byte("x"))
	require.Equal(t, []string{"z from fan", "a from fan", "m from fan", "z from fan", "a from fan"}, got)
}

func TestInvalidUseFailsTheTestWithAReason(t *testing.T) {
	nowhere := topics.New(topics.Spec{Name: "nowhere"}, codec.String())
	strict := topics.New(topics.Spec{Name: "additions"}, codec.Of[int](refusing{}))
	for what, misuse := range map[string]struct {
		says string
		do   func(tb processortest.TB, d *processortest.Driver)
	}{
		"unread input": {"no graph reads topic nowhere", func(_ processortest.TB, d *processortest.Driver) {
			processortest.In(d, nowhere).Pipe("a", "x")
		}},
		"unwritten output": {"no graph writes topic nowhere", func(_ processortest.TB, d *processortest.Driver) {
			processortest.Out(d, nowhere)
		}},
		"no output": {"topic counts has no further output", func(_ processortest.TB, d *processortest.Driver) {
			processortest.Out(d, counts).Next()
		}},
		"foreign table": {"group journal has no table here", func(_ processortest.TB, d *processortest.Driver) {
			processortest.Table(d, journal, newRowCodec())
		}},
		"unknown offset": {"topic additions has no offset 0", func(_ processortest.TB, d *processortest.Driver) {
			processortest.In(d, additions).PipeAt(0)
		}},
		"clock goes back": {"the clock cannot go back", func(_ processortest.TB, d *processortest.Driver) { d.Advance(-1) }},
		"refused value": {"encode for topic additions: refused", func(_ processortest.TB, d *processortest.Driver) {
			processortest.In(d, strict).Pipe("a", 1)
		}},
		"unreadable output": {"topic tally-dlq offset 0: refused", func(_ processortest.TB, d *processortest.Driver) {
			processortest.In(d, additions).PipeRaw("a", []byte("?"))
			processortest.Out(d, topics.New(topics.Spec{Name: letters}, codec.Of[int](refusing{}))).Drain()
		}},
		"unreadable row": {"row of group tally", func(_ processortest.TB, d *processortest.Driver) {
			processortest.In(d, additions).Pipe("a", addition{By: 1})
			processortest.Table(d, tally, codec.Of[int](refusing{})).Get("a")
		}},
		"same group twice": {`group "tally" is given twice`, func(tb processortest.TB, _ *processortest.Driver) {
			processortest.New(tb, start, tallyGraph(), tallyGraph())
		}},
		"nil graph": {"graph cannot run here: it is nil", func(tb processortest.TB, _ *processortest.Driver) {
			processortest.New(tb, start, nil)
		}},
		"no graph": {"no graph given", func(tb processortest.TB, _ *processortest.Driver) { processortest.New(tb, start) }},
		"no input": {`group "deaf": no input stream`, func(tb processortest.TB, _ *processortest.Driver) {
			processortest.New(tb, start, goka.DefineGroup("deaf", goka.Persist(codec.String())))
		}},
	} {
		t.Run(what, func(t *testing.T) {
			tb := runFake(func(tb processortest.TB) { misuse.do(tb, processortest.New(tb, start, tallyGraph())) })
			require.Contains(t, tb.Errors(), misuse.says)
		})
	}
}

// refusing is a format that returns an error for every value.
type refusing struct{}

var errRefused = errors.New("refused")

func (refusing) Marshal(int) ([]byte, error)   { return nil, errRefused }
func (refusing) Unmarshal([]byte) (int, error) { return 0, errRefused }
