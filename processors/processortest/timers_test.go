package processortest_test

import (
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/processortest"
)

func TestDeadlineFiresAtItsTimeAndOnce(t *testing.T) {
	d := processortest.New(t, start, tallyGraph())
	in, out := processortest.In(d, additions), processortest.Out(d, counts)
	in.Pipe("a", addition{By: 1})
	out.Drain()

	d.Advance(rest - time.Millisecond)
	require.Zero(t, out.Len())
	d.Advance(time.Millisecond)
	closed := out.Next()
	require.True(t, closed.Value.Closed)
	require.Equal(t, start.Add(rest), closed.Timestamp)
	d.Advance(time.Hour)
	require.Zero(t, out.Len())
	require.Empty(t, processortest.Table(d, tally, newRowCodec()).Keys())
}

func TestMovedDeadlineDoesNotFireAtItsOldTime(t *testing.T) {
	d := processortest.New(t, start, tallyGraph())
	in, out := processortest.In(d, additions), processortest.Out(d, counts)
	in.Pipe("a", addition{By: 1})
	d.Advance(rest / 2)
	in.Pipe("a", addition{By: 1})
	out.Drain()
	d.Advance(rest - time.Millisecond)
	require.Zero(t, out.Len())
	d.Advance(time.Hour)
	require.Equal(t, start.Add(rest/2).Add(rest), out.Next().Timestamp, "the clock stops at the deadline on its way")
	require.Equal(t, start.Add(rest/2+rest-time.Millisecond+time.Hour), d.Now())
}

func TestDeadlinesFireInDueOrder(t *testing.T) {
	d := processortest.New(t, start, tallyGraph())
	in, out := processortest.In(d, additions), processortest.Out(d, counts)
	for _, key := range []string{"c", "a", "b"} {
		in.Pipe(key, addition{By: 1})
		d.Advance(time.Millisecond)
	}
	in.Pipe("z", addition{By: 1})
	in.Pipe("y", addition{By: 1})
	out.Drain()
	d.Advance(rest)
	var got []string
	for _, r := range out.Drain() {
		got = append(got, r.Key)
	}
	require.Equal(t, []string{"c", "a", "b", "y", "z"}, got, "equal times go by key")
}

func TestOverdueDeadlineOfASeededRowFiresImmediately(t *testing.T) {
	d := processortest.New(t, start, tallyGraph())
	processortest.Table(d, tally, newRowCodec()).Put("a", row{N: 3, RestMS: start.Add(-time.Hour).UnixMilli()})
	d.Advance(0)
	got := processortest.Out(d, counts).Next()
	require.Equal(t, 3, got.Value.N)
	require.Equal(t, start, got.Timestamp)
}

// alarm is a table codec whose deadlines call the function of a test.
type alarm struct {
	codec.Codec[row]
	fire func(goka.Context, processors.Due)
}

func (a alarm) Deadline(raw []byte) (int64, bool) {
	ms := a.Unmarshal(raw).Value.RestMS
	return ms, ms > 0
}

func (a alarm) OnDeadline(ctx goka.Context, due processors.Due) { a.fire(ctx, due) }

func alarmDriver(tb processortest.TB, fire func(goka.Context, processors.Due)) *processortest.Driver {
	d := processortest.New(tb, start, goka.DefineGroup("alarm",
		goka.Input("ignored", codec.String(), func(goka.Context, any) {}),
		goka.Persist(alarm{codec.JSON[row](), fire})))
	processortest.Table(d, "alarm", codec.JSON[row]()).Put("a", row{RestMS: start.Add(time.Second).UnixMilli()})
	return d
}

func TestChainOfDeadlinesFiresEachAtItsTime(t *testing.T) {
	var at []time.Duration
	d := alarmDriver(t, func(ctx goka.Context, due processors.Due) {
		require.Equal(t, due.At.UnixMilli(), runtimeapi.Now(ctx).UnixMilli())
		require.Equal(t, runtimeapi.Now(ctx), ctx.Timestamp())
		at = append(at, runtimeapi.Now(ctx).Sub(start))
		ctx.SetValue(row{RestMS: due.At.Add(time.Second).UnixMilli()})
	})
	d.Advance(3500 * time.Millisecond)
	require.Equal(t, []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}, at)
}

func TestDeadlineWhoseRowIsNotWrittenFiresOnce(t *testing.T) {
	fired := 0
	d := alarmDriver(t, func(goka.Context, processors.Due) { fired++ })
	d.Advance(time.Hour)
	require.Equal(t, 1, fired)
	rows := processortest.Table(d, "alarm", codec.JSON[row]())
	r, _ := rows.Get("a")
	rows.Put("a", r)
	d.Advance(0)
	require.Equal(t, 2, fired, "a written row is a new deadline")
}

func TestDeadlineThatIsNotMovedFiresAgainAfterATick(t *testing.T) {
	var at []time.Duration
	d := alarmDriver(t, func(ctx goka.Context, _ processors.Due) {
		at = append(at, runtimeapi.Now(ctx).Sub(start))
		r, _ := rowOf(ctx)
		ctx.SetValue(r)
	})
	d.Advance(1600 * time.Millisecond)
	require.Equal(t, []time.Duration{1000 * time.Millisecond, 1250 * time.Millisecond, 1500 * time.Millisecond}, at)
}

func TestDeadlineThatIsNeverMovedFailsTheTest(t *testing.T) {
	tb := runFake(func(tb processortest.TB) {
		alarmDriver(tb, func(ctx goka.Context, _ processors.Due) {
			r, _ := rowOf(ctx)
			ctx.SetValue(r)
		}).Advance(24 * time.Hour)
	})
	require.Contains(t, tb.Errors(), "a deadline of group alarm fired 1001 times and was never moved")
}

func TestFailingDeadlineFailsTheTest(t *testing.T) {
	tb := runFake(func(tb processortest.TB) {
		alarmDriver(tb, func(ctx goka.Context, _ processors.Due) { ctx.Fail(errRequested) }).Advance(time.Minute)
	})
	require.Contains(t, tb.Errors(), "alarm-timer offset 0: processor stopped: group alarm")
	require.Contains(t, tb.Errors(), errRequested.Error())
}
