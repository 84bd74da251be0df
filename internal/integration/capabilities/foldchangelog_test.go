package capabilities

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/topics"
)

// deltas returns a turn of n deltas of one block with the same size, and its terminal record.
func deltas(session, turn string, n, bytes int) (events []topics.AgentEvent) {
	text := fmt.Sprintf("%-*s", bytes, "Berth N4 is free at 18:00.")[:bytes]
	event := func(raw string) {
		events = append(events, topics.AgentEvent{
			SessionID: session, TurnID: turn, Attempt: 1, Seq: int64(len(events) + 1), Event: topics.Raw(raw),
		})
	}
	event(`{"type":"message_start","data":{"type":"message_start","id":"msg-0"}}`)
	for range n {
		event(`{"type":"message_delta","data":{"type":"message_delta","id":"msg-0","delta":"` + text + `"}}`)
	}
	return append(events, topics.AgentEvent{
		SessionID: session, TurnID: turn, Attempt: 1, Seq: int64(n + 2), Result: &topics.AgentResult{OK: true},
	})
}

// changelog counts the records of the group's table topic, and the bytes of their keys and values.
func (r *foldRig) changelog() (records, bytes int) {
	r.tb.Helper()
	name := string(r.topics.FoldGroup()) + "-table"
	reader, err := kgo.NewClient(kgo.SeedBrokers(r.brokers...), kgo.ConsumeTopics(name),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(r.tb, err)
	defer reader.Close()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	ends, err := kadm.NewClient(reader).ListCommittedOffsets(ctx, name)
	require.NoError(r.tb, err)
	left := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	for len(left) > 0 {
		fetches := reader.PollFetches(ctx)
		require.NoError(r.tb, ctx.Err())
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			p.EachRecord(func(record *kgo.Record) {
				records++
				bytes += len(record.Key) + len(record.Value)
				// A transaction marker may follow the last record.
				if slack := left[p.Partition] - record.Offset; slack <= 2 {
					delete(left, p.Partition)
				}
			})
		})
	}
	return records, bytes
}

// turnCost plays a turn of deltas and returns its cost in the changelog. If pace is not nil, each delta waits for it and is a
// cut of its own.
func turnCost(tb testing.TB, guarantee processors.Guarantee, n, bytes int, pace <-chan time.Time) (int, float64) {
	tb.Helper()
	r := newFoldRig(tb, guarantee, 1, fold.Config{TurnLimit: 16 << 20})
	g := r.run()
	r.watch()
	for _, e := range deltas("session-1", "turn-1", n, bytes) {
		if pace != nil {
			<-pace
		}
		r.send(e)
	}
	r.await(1)
	g.stop()
	records, written := r.changelog()
	return records, float64(written) / float64(n*bytes)
}

// The cost of a turn in the changelog grows linearly with its size.
func TestChangelogOfATurnIsLinear(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		for _, n := range []int{500, 4000} {
			records, times := turnCost(t, guarantee, n, 32, nil)
			t.Logf("%d deltas of 32 bytes: %d records, %.1f times the text", n, records, times)
			// A row with every delta is the most that there can be: the tail, the ids and the counts.
			require.Less(t, times, float64(400)/32)
		}
	})
}

func BenchmarkChangelog(b *testing.B) {
	for _, guarantee := range testbroker.Guarantees(b, processors.AtLeastOnce, processors.ExactlyOnce) {
		measure := func(name string, n, bytes int, pace <-chan time.Time) {
			b.Run(fmt.Sprintf("%s/%s/%d-bytes", guarantee, name, bytes), func(b *testing.B) {
				for range b.N {
					records, times := turnCost(b, guarantee, n, bytes, pace)
					b.ReportMetric(times, "x-text")
					b.ReportMetric(float64(records), "records")
				}
				b.ReportMetric(0, "ns/op")
			})
		}
		for _, bytes := range []int{4, 16, 32, 128} {
			measure("burst", 10_000, bytes, nil)
		}
		pace := time.NewTicker(2 * time.Millisecond)
		measure("paced", 1000, 32, pace.C)
		pace.Stop()
	}
}

// BenchmarkGroup folds turns of 200 records of 64 sessions, which alternate.
func BenchmarkGroup(b *testing.B) {
	for _, guarantee := range testbroker.Guarantees(b, processors.AtLeastOnce, processors.ExactlyOnce) {
		b.Run(string(guarantee), func(b *testing.B) {
			const sessions, records = 64, 200
			r := newFoldRig(b, guarantee, 4, fold.Config{})
			g := r.run()
			defer g.stop()
			r.watch()
			turns := 0
			play := func() {
				for i := range sessions {
					r.send(turnOf("session-"+strconv.Itoa(i), fmt.Sprintf("turn-%d-%d", turns, i), records)...)
				}
				turns += sessions
				r.await(turns)
			}
			play()
			began := time.Now()
			b.ResetTimer()
			for range b.N {
				play()
			}
			b.StopTimer()
			b.ReportMetric(float64(b.N*sessions*records)/time.Since(began).Seconds(), "events/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}
