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
