package processortest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/processortest"
)

func TestHeldOutputsAreReadInTheOrderOfTheTest(t *testing.T) {
	d := processortest.New(t, start, tallyGraph(), journalGraph())
	d.HoldOutputs()
	in, held := processortest.In(d, additions), processortest.In(d, counts)
	in.Pipe("a", addition{By: 1})
	in.Pipe("b", addition{By: 2})
	held.PipeAt(1)
	held.PipeAt(0)
	out := processortest.Out(d, lines)
	require.Equal(t, "b has 2", out.Next().Value)
	require.Equal(t, "a has 1", out.Next().Value)
}

func TestHeldOutputsAreNotReplayed(t *testing.T) {
	d := processortest.New(t, start, tallyGraph(), journalGraph())
	d.HoldOutputs()
	processortest.In(d, additions).Pipe("a", addition{By: 1})
	require.NoError(t, d.Replay())
	require.Zero(t, processortest.Out(d, lines).Len())
	processortest.In(d, counts).PipeAt(0)
	require.NoError(t, d.Replay())
	require.Equal(t, "a has 1", processortest.Out(d, lines).Next().Value)
}

func TestRestoredTablesLoseWhatCameLater(t *testing.T) {
	d := processortest.New(t, start, tallyGraph())
	in, rows := processortest.In(d, additions), processortest.Table(d, tally, newRowCodec())
	in.Pipe("a", addition{By: 1})
	snapshot := d.Snapshot()
	last := in.Pipe("a", addition{By: 2})
	in.Pipe("b", addition{By: 4})
	d.Restore(snapshot)
	require.Equal(t, []string{"a"}, rows.Keys())
	in.PipeAt(last)
	r, _ := rows.Get("a")
	require.Equal(t, 3, r.N)
	require.Len(t, processortest.Out(d, counts).Drain(), 4)
}

func TestDeadlineOfAWrittenOrRestoredRowFiresAtOnce(t *testing.T) {
	d := processortest.New(t, start, tallyGraph())
	rows := processortest.Table(d, tally, newRowCodec())
	processortest.In(d, additions).Pipe("a", addition{By: 1})
	snapshot := d.Snapshot()
	r, _ := rows.Get("a")
	d.Advance(rest)
	rows.Put("a", r)
	d.Advance(0)
	d.Restore(snapshot)
	d.Advance(0)
	require.Empty(t, rows.Keys())
	require.Len(t, processortest.Out(d, counts).Drain(), 4)
}

func TestPartsAreNoRows(t *testing.T) {
	edges := processors.Edges("parted", processors.Input(additions, func(c *processors.Context, in codec.Decoded[addition]) error {
		if err := c.SetPart(7, fmt.Appendf(nil, `{"rest_ms":%d}`, start.UnixMilli())); err != nil {
			return err
		}
		return c.SetValue(row{N: in.Value.By})
	}))
	d := processortest.New(t, start, goka.DefineGroup("parted", append(edges, goka.Persist(newRowCodec()))...))
	processortest.In(d, additions).Pipe("a", addition{By: 1})
	rows := processortest.Table(d, "parted", newRowCodec())
	require.NotNil(t, rows.Part("a", 7))
	require.Equal(t, []string{"a"}, rows.Keys())
	d.Advance(time.Hour) // the part has no deadline
	require.NotNil(t, rows.Part("a", 7))
}

func TestCrashDeliversAgainWhatWasNotCommitted(t *testing.T) {
	d := processortest.New(t, start, tallyGraph(), journalGraph())
	in, rows := processortest.In(d, additions), processortest.Table(d, tally, newRowCodec())
	out := processortest.Out(d, lines)
	in.Pipe("a", addition{By: 1})
	snapshot := d.Snapshot()
	in.Pipe("a", addition{By: 2})
	in.Pipe("b", addition{By: 4})
	require.Len(t, out.Drain(), 3)
	d.Crash(snapshot)
	a, _ := rows.Get("a")
	b, _ := rows.Get("b")
	require.Equal(t, []int{3, 4}, []int{a.N, b.N}, "the first addition was committed")
	// Journal reads its two records again, and those that tally writes again.
	require.Len(t, out.Drain(), 4)
}

func TestCrashDeliversAgainWhatWasHeldBackBefore(t *testing.T) {
	d := processortest.New(t, start, tallyGraph(), journalGraph())
	d.HoldOutputs()
	processortest.In(d, additions).Pipe("a", addition{By: 1})
	snapshot := d.Snapshot()
	out := processortest.Out(d, lines)
	processortest.In(d, counts).PipeAt(0)
	require.Len(t, out.Drain(), 1)
	for range 2 {
		d.Crash(snapshot)
		require.Len(t, out.Drain(), 1, "it was written before the snapshot, and delivered after it")
	}
	d.Crash(d.Snapshot())
	require.Zero(t, out.Len())
}

func TestNextDeadlineIsWhereAdvanceFiresFirst(t *testing.T) {
	d := processortest.New(t, start, tallyGraph())
	_, ok := d.NextDeadline()
	require.False(t, ok)
	processortest.In(d, additions).Pipe("a", addition{By: 1})
	d.Advance(time.Second)
	processortest.In(d, additions).Pipe("b", addition{By: 1})
	at, ok := d.NextDeadline()
	require.True(t, ok)
	require.Equal(t, start.Add(rest), at)
	d.Advance(at.Sub(d.Now()))
	require.Equal(t, []string{"b"}, processortest.Table(d, tally, newRowCodec()).Keys())
	require.Len(t, processortest.Out(d, counts).Drain(), 3)
}
