package processortest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/testing/failing"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/processortest"
)

func TestFailingCallbackFailsTheTestWithItsError(t *testing.T) {
	tb := runFake(func(tb processortest.TB) {
		d := processortest.New(tb, start, tallyGraph(), journalGraph())
		processortest.In(d, additions).Pipe("a", addition{Then: "fail"})
		tb.Errorf("continued")
	})
	require.Contains(t, tb.Errors(), "while group tally handled additions offset 0: processor stopped: group tally")
	require.Contains(t, tb.Errors(), errRequested.Error())
	require.NotContains(t, tb.Errors(), "continued")
}

func TestPanickingCallbackFailsTheTestWithItsPanic(t *testing.T) {
	tb := runFake(func(tb processortest.TB) {
		d := processortest.New(tb, start, tallyGraph())
		processortest.In(d, additions).Pipe("a", addition{Then: "panic"})
	})
	require.Contains(t, tb.Errors(), "requested panic")
}

func TestStepsAfterAProcessorFailureFailTheTest(t *testing.T) {
	tb := &failing.TB{}
	var d *processortest.Driver
	tb.Step(func() {
		d = processortest.New(tb, start, tallyGraph(), journalGraph())
		processortest.In(d, additions).Pipe("a", addition{By: 1})
		processortest.In(d, additions).Pipe("a", addition{Then: "fail"})
	})
	for _, step := range []func(){
		func() { processortest.In(d, additions).Pipe("a", addition{By: 1}) },
		func() { processortest.In(d, counts).Pipe("a", count{}) },
		func() { processortest.In(d, additions).PipeAt(0) },
		func() { d.Advance(time.Minute) },
		func() { _ = d.Replay() },
	} {
		require.Contains(t, tb.Step(step), errRequested.Error())
	}
	tb.End()
}

func TestBlockedCallbackFailsTheTestWithItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where a step is too long only if all goroutines are blocked
		release := make(chan struct{})
		graph := goka.DefineGroup("stuck",
			goka.Input("work", codec.String(), func(goka.Context, any) { <-release }))
		tb := runFake(func(tb processortest.TB) {
			d := processortest.New(tb, start, graph)
			tb.Cleanup(func() { close(release) })
			d.SetStepTimeout(20 * time.Millisecond)
			processortest.InRaw(d, "work").Pipe("a", []byte("x"))
		})
		require.Contains(t, tb.Errors(), "while group stuck handled work offset 0: blocked for too long")
	})
}

func TestUnreadOutputsFailTheTest(t *testing.T) {
	tb := runFake(func(tb processortest.TB) {
		d := processortest.New(tb, start, tallyGraph())
		in := processortest.In(d, additions)
		in.Pipe("a", addition{By: 1})
		in.PipeRaw("a", []byte("?"))
		in.PipeRaw("a", []byte("?"))
		require.Equal(t, []string{"counts", letters}, d.Unread())
	})
	require.Contains(t, tb.Errors(), "topic counts has 1 outputs that the test did not read")
	require.Contains(t, tb.Errors(), "topic tally-dlq has 2 outputs that the test did not read")
}

func TestUnreadOutputsAreNotReportedInAFailedTest(t *testing.T) {
	tb := runFake(func(tb processortest.TB) {
		d := processortest.New(tb, start, tallyGraph())
		processortest.In(d, additions).Pipe("a", addition{By: 1})
		tb.Errorf("something else")
	})
	require.Equal(t, "something else", tb.Errors())
}

func TestTypedHandlersFailAndPanicAsInProduction(t *testing.T) {
	graph := func() *goka.GroupGraph {
		return goka.DefineGroup("typed", processors.Edges("typed",
			processors.Input(additions, func(_ *processors.Context, in codec.Decoded[addition]) error {
				if in.Value.Then == "fail" {
					return errRequested
				}
				panic("requested panic")
			}))...)
	}
	d := processortest.New(t, start, graph())
	processortest.In(d, additions).Pipe("a", addition{})
	require.Equal(t, "a", processortest.OutRaw(d, "typed-dlq").Next().Key, "a panic leaves a dead letter")

	tb := runFake(func(tb processortest.TB) {
		processortest.In(processortest.New(tb, start, graph()), additions).Pipe("a", addition{Then: "fail"})
	})
	require.Contains(t, tb.Errors(), errRequested.Error())
}

func BenchmarkPipe(b *testing.B) {
	d := processortest.New(b, start, journalGraph())
	in := processortest.In(d, counts)
	for b.Loop() {
		in.Pipe("a", count{N: 1})
	}
	processortest.Out(d, lines).Drain()
}
