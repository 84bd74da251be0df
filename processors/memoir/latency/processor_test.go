package latency

import (
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/topics"
)

func TestLatenciesAreAggregatedByTool(t *testing.T) {
	c, err := topics.For("quay")
	require.NoError(t, err)
	graph, err := Graph("quay", Config{})
	require.NoError(t, err)
	d := processortest.New(t, noon, graph)
	in := processortest.In(d, c.ToolUseLatency)
	letters := processortest.OutRaw(d, "quay-latencies-dlq")
	table := processortest.Table(d, c.LatenciesGroup(), rowFormat.Codec())

	in.PipeRaw("berth_lookup", []byte(`{"tool_name":"berth_lookup","latency_ms":212,"session_id":"harbor-s19","timestamp":"2026-06-20T08:15:05.9Z"}`))
	record := in.Pipe("berth_lookup", topics.ToolLatency{LatencyMS: 30_000, Status: "error"},
		processortest.WithHeaders(goka.Headers{topics.HeaderID: []byte("call-2")}))
	in.PipeAt(record)
	in.Pipe("tide_table", topics.ToolLatency{LatencyMS: 1})
	require.Equal(t, []string{"berth_lookup", "tide_table"}, table.Keys())
	row, _ := table.Get("berth_lookup")
	a, err := AggregateOf("berth_lookup", row)
	require.NoError(t, err)
	require.EqualValues(t, 2, a.Count)
	require.EqualValues(t, 1, a.Errors)
	require.NoError(t, d.Replay())

	in.Pipe("berth_lookup", topics.ToolLatency{LatencyMS: -1})
	in.PipeRaw("berth_lookup", nil)
	for _, reason := range []string{"latency: it is negative", "latency: tombstone"} {
		require.Equal(t, reason, string(letters.Next().Headers["error.reason"]))
	}

	d.Advance(29 * 24 * time.Hour)
	in.Pipe("tide_table", topics.ToolLatency{LatencyMS: 2})
	d.Advance(2 * 24 * time.Hour)
	require.Equal(t, []string{"tide_table"}, table.Keys(), "a tool without calls for 30 days is removed")
}

func TestConfigIsChecked(t *testing.T) {
	for want, c := range map[string]Config{
		"Expiry is -1ns": {Expiry: -1}, "RememberFor is 1ms, want 1s": {RememberFor: time.Millisecond}, "RememberCount is -1": {RememberCount: -1},
	} {
		_, err := Graph("quay", c)
		require.ErrorIs(t, err, ErrConfig)
		require.ErrorContains(t, err, want)
	}
	_, err := Graph(" ", Config{})
	require.ErrorContains(t, err, "latency: ")
	_, err = Follow([]string{"localhost:9092"}, " ")
	require.ErrorContains(t, err, "latency: ")
	_, err = Follow(nil, "quay")
	require.Error(t, err)
}
