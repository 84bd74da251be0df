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

// floorIsGrantedAgain is the body of a test function: the group is killed after its output was acknowledged and before its row was.
func floorIsGrantedAgain(t processortest.TB) {
	d := processortest.New(t, time.Unix(0, 0), floorGraph())
	before := d.Snapshot()
	offset := processortest.In(d, asks).Pipe("conv-1", ask{Agent: "ann"})
	d.Restore(before)
	processortest.In(d, asks).PipeAt(offset)
	for _, r := range processortest.Out(d, grants).Drain() {
		fmt.Println("granted to", r.Value.Agent, "by", r.ID())
	}
}

func ExampleDriver_Restore() {
	fmt.Println("test errors:", runFake(floorIsGrantedAgain).errorText())
	// Output:
	// granted to ann by conv-1/ann
	// granted to ann by conv-1/ann
	// test errors:
}

// grantsAreReadInAnyOrder is the body of a test function. A group that reads grants gets them as the test decides.
func grantsAreReadInAnyOrder(t processortest.TB) {
	reader := goka.DefineGroup("readers", goka.Input(grants.Stream(), grants.Codec(), func(_ goka.Context, in any) {
		fmt.Println("read:", in.(codec.Decoded[grant]).Value.Agent)
	}))
	d := processortest.New(t, time.Unix(0, 0), floorGraph(), reader)
	d.HoldOutputs()
	processortest.In(d, asks).Pipe("conv-1", ask{Agent: "ann"})
	processortest.In(d, asks).Pipe("conv-2", ask{Agent: "bob"})
	written := processortest.In(d, grants)
	written.PipeAt(1)
	written.PipeAt(0)
}

func ExampleDriver_HoldOutputs() {
	fmt.Println("test errors:", runFake(grantsAreReadInAnyOrder).errorText())
	// Output:
	// read: bob
	// read: ann
	// test errors:
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
