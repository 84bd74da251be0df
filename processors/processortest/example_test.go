package processortest_test

import (
	"fmt"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/topics"
)

// A floor is granted to the first agent of a conversation that asks.
type (
	ask   struct{ Agent string }
	grant struct{ Agent string }
	floor struct{ Holder string }
)

var (
	asks   = topics.New(topics.Spec{Name: "asks"}, codec.JSON[ask]())
	grants = topics.New(topics.Spec{Name: "grants"}, codec.JSON[grant]())
	floors = codec.JSON[floor]()
)

func floorGraph() *goka.GroupGraph {
	edges := processors.Edges("floors",
		processors.Input(asks, func(c *processors.Context, in codec.Decoded[ask]) error {
			if c.Value() != nil {
				return nil // taken
			}
			id := c.Key() + "/" + in.Value.Agent
			if err := processors.EmitWithID(c, grants, c.Key(), grant(in.Value), id); err != nil {
				return err
			}
			return c.SetValue(floor{Holder: in.Value.Agent})
		}))
	return goka.DefineGroup("floors", append(edges, goka.Persist(floors), goka.Output(grants.Stream(), grants.Codec()))...)
}

// floorIsGrantedOnce is the body of a test function, whose t would be a *testing.T.
func floorIsGrantedOnce(t processortest.TB) {
	d := processortest.New(t, time.Unix(0, 0), floorGraph())
	in, out := processortest.In(d, asks), processortest.Out(d, grants)

	in.Pipe("conv-1", ask{Agent: "ann"})
	in.Pipe("conv-1", ask{Agent: "bob"})
	in.PipeRaw("conv-1", []byte("{not json")) // is dead-lettered; processing continues

	for _, r := range out.Drain() {
		fmt.Println("granted to", r.Value.Agent, "by", r.ID())
	}
	holder, _ := processortest.Table(d, "floors", floors).Get("conv-1")
	fmt.Println("held by", holder.Holder)
	fmt.Println("replay:", d.Replay())

	before := d.Snapshot()
	offset := in.Pipe("conv-2", ask{Agent: "cy"})
	d.Restore(before) // a crash: the output is written, and the row is lost
	in.PipeAt(offset)
	for _, r := range out.Drain() {
		fmt.Println("granted to", r.Value.Agent, "by", r.ID())
	}
}

func Example() {
	tb := runFake(floorIsGrantedOnce)
	fmt.Println("test errors:", tb.Errors())
	// Output:
	// granted to ann by conv-1/ann
	// held by ann
	// replay: <nil>
	// granted to cy by conv-2/cy
	// granted to cy by conv-2/cy
	// test errors: processortest: topic floors-dlq has 1 outputs that the test did not read
}
