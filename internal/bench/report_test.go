package main

import (
	"bytes"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "update the golden files")

// sample is a report of made-up figures.
func sample() *report {
	t := newTally(phase{turns: 4, concurrency: 2}, time.UnixMilli(0))
	for i := range 4 {
		t.done(&session{began: time.UnixMilli(int64(i))}, time.UnixMilli(int64(10+2*i)))
	}
	t.end()
	at := scenario{
		History: 10240, Partitions: 4, Tools: 2, Steps: 1, Sessions: 1000, Instances: 1, Concurrency: 100,
		Guarantee: "at_least_once", Storage: "leveldb",
	}
	alone := latency{P50: 3, P90: 4, P99: 5, Max: 6}
	before := usageReading{ok: true, logs: map[string]int64{"message-input": 1000}}
	after := usageReading{
		processor: usage{cpu: 3 * time.Millisecond, resident: 50 << 20, peak: 60 << 20}, ok: true,
		driver:  usage{cpu: time.Millisecond},
		logs:    map[string]int64{"message-input": 5096, "message-output": 4096},
		traffic: traffic{read: 3000, written: 1000},
	}
	floor := &result{Subject: subjectFloor, scenario: at, Alone: &alone}
	floor.Guarantee, floor.Storage = "", ""
	floor.fill(t, before, after)
	after.processor.cpu *= 2
	after.brokerOK, before.brokerOK = true, true
	ours := &result{Subject: subjectTurntable, scenario: at, Alone: &alone}
	ours.fill(t, before, after)
	ours.compare(floor)
	ours.Repeats, ours.RepeatsOf = 1, map[string]int{"output": 1}
	nothing := &result{Subject: subjectCommand, scenario: at}
	return &report{
		Machine: machine{OS: "linux", Arch: "amd64", CPUs: 2, CPU: "a CPU", Go: "go1.26"}, Broker: "a broker",
		Flags: "-sweep table", Results: []*result{floor, ours, nothing},
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(name, got, 0o644))
	}
	want, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

func TestReportHasItsGoldenFormat(t *testing.T) {
	r := sample()
	raw, err := r.encode()
	require.NoError(t, err)
	golden(t, "testdata/report.json", raw)
	var table bytes.Buffer
	require.NoError(t, r.table(&table))
	golden(t, "testdata/report.txt", table.Bytes())
}

func TestEmptyReportPrintsNothing(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, newReport("b", nil).write(&out, ""))
	require.Empty(t, out.String())
}

func TestLatencyStartsAtTheScheduledTimeOfATurn(t *testing.T) {
	start := time.UnixMilli(1000)
	tl := newTally(phase{turns: 3, rate: 100, concurrency: 1}, start)
	late := start.Add(time.Second)
	for i := range 3 {
		due, ok := tl.next(late)
		require.True(t, ok)
		require.Equal(t, start.Add(time.Duration(i)*10*time.Millisecond), due)
		tl.begun++
		tl.done(&session{began: due}, late)
	}
	require.True(t, tl.over(late))
	require.InDelta(t, 1000, tl.quantiles().Max, 2)
	require.InDelta(t, 980, tl.quantiles().P50-10, 2)
}

func TestLoopEndsAfterItsDuration(t *testing.T) {
	start := time.UnixMilli(0)
	tl := newTally(phase{duration: time.Second, concurrency: 1}, start)
	require.False(t, tl.over(start.Add(999*time.Millisecond)))
	require.True(t, tl.over(start.Add(time.Second)))
}
