package instance_test

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/instance"
)

// hopping sends each record four times through the broker: three times through the loop, then out.
func hopping() *goka.GroupGraph {
	hop := func(ctx goka.Context, m any) {
		n, _ := strconv.Atoi(m.(codec.Decoded[string]).Value)
		if n == 3 {
			ctx.Emit("out", ctx.Key(), "done")
			return
		}
		ctx.Loopback(ctx.Key(), strconv.Itoa(n+1))
	}
	return goka.DefineGroup("g", goka.Input("in", codec.String(), hop), goka.Loop(codec.String(), hop),
		goka.Output("out", codec.String()))
}

// hops is the least time from a record's send to the arrival of its output, one record at a time: whatever waits for
// something always waits, and a busy machine only adds to it.
func hops(t testing.TB, brokers []string, rounds int) time.Duration {
	t.Helper()
	c := dial(t, brokers, kgo.ConsumeTopics("out"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	took := make([]time.Duration, rounds)
	for i := range took {
		began := time.Now()
		require.NoError(t, c.ProduceSync(ctx, keyed("in", "k", "0")).FirstErr())
		for c.PollFetches(ctx).NumRecords() == 0 {
			require.NoError(t, ctx.Err())
		}
		took[i] = time.Since(began)
	}
	return slices.Min(took)
}

// With Goka's Flush.Frequency of 100 ms every hop waits for the next flush. The factor is far below what is
// measured on an idle machine (about 100). It is not parallel: what it measures is not the other tests.
func TestRecordCrossesGroupsWithoutWaitingForAFlushInterval(t *testing.T) {
	_, brokers := cluster(t, "in", "out")
	r := stock(t, brokers, hopping(), oldest)
	eventually(t, r.recovered)
	theirs := hops(t, brokers, 5)
	r.stop()
	require.NoError(t, r.wait(t))

	_, brokers = cluster(t, "in", "out")
	run(t, instance.Config{Brokers: brokers, Graph: hopping()}).ready(t)
	ours := hops(t, brokers, 21)
	t.Logf("four hops: stock %s, ours %s", theirs, ours)
	require.Greater(t, theirs, 300*time.Millisecond)
	require.Less(t, 4*ours, theirs)
}
