package invoke

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// BenchmarkStart measures how long a pipeline needs until it is ready, with 1000 turns of 200 events of 1 KB in its look-back:
// from the topics, and from the table of turns. The metric ratio compares both in one run.
func BenchmarkStart(b *testing.B) {
	const turns, events = 1000, 200
	k := newBroker(b)
	for turn := range turns {
		var list []topics.AgentEvent
		for i := range events {
			list = append(list, topics.AgentEvent{
				SessionID: fmt.Sprint("s-", turn), TurnID: strconv.Itoa(turn), Attempt: 1, Seq: int64(i + 1), Event: kilobyte,
			})
		}
		list[events-1].Event, list[events-1].Result = nil, &done
		k.writeAll(list)
	}
	k.turnTable(processors.AtLeastOnce)
	k.awaitCovered()
	start := func(change ...func(*PipelineConfig)) (time.Duration, int) {
		began := time.Now()
		p, r := k.measured(change...)
		took := time.Since(began)
		require.Equal(b, turns, p.hub.index.recent.Len())
		return took, r.bytes
	}
	var topic, table time.Duration
	var topicBytes, tableBytes int
	for b.Loop() {
		t, n := start()
		topic, topicBytes = topic+t, n
		t, n = start(fromTable)
		table, tableBytes = table+t, n
	}
	b.ReportMetric(float64(topic.Milliseconds())/float64(b.N), "ms/topics")
	b.ReportMetric(float64(table.Milliseconds())/float64(b.N), "ms/table")
	b.ReportMetric(float64(topic)/float64(table), "ratio")
	b.ReportMetric(float64(topicBytes)/float64(tableBytes), "bytes-ratio")
}
