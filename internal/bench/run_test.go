package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
)

// small is a run of a moment.
var small = []string{
	"-sessions", "12", "-concurrency", "6", "-turns", "40", "-warmup", "6", "-alone", "3", "-partitions", "2",
}

func reportOf(t *testing.T, file string) report {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	var r report
	require.NoError(t, json.Unmarshal(raw, &r, json.RejectUnknownMembers(true)))
	return r
}

func TestRunMeasuresBothGuaranteesAndTheFloor(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	file, profiles := filepath.Join(dir, "out.json"), filepath.Join(dir, "profiles")
	var out, notes bytes.Buffer
	args := append([]string{"-floor", "-guarantee", "both", "-history", "4096"}, small...)
	args = append(args, "-json", file, "-pprof", profiles)
	require.NoError(t, run(t.Context(), args, &out, &notes))

	r := reportOf(t, file)
	require.Equal(t, "embedded broker", r.Broker)
	require.Equal(t, runtime.NumCPU(), r.Machine.CPUs)
	require.Len(t, r.Results, 5)
	var who []string
	for _, one := range r.Results {
		who = append(who, strings.TrimSpace(one.Subject+" "+one.Guarantee))
		require.Equal(t, 40, one.Turns)
		require.Zero(t, one.Repeats)
		require.Empty(t, one.Broken)
		require.Positive(t, one.PerSecond)
		require.Positive(t, one.Load.P50)
		require.LessOrEqual(t, one.Load.P99, one.Load.Max)
		require.NotNil(t, one.Alone)
		require.Greater(t, *one.Log, 4*4096.0, "two requests and two responses have the history")
		require.Greater(t, one.Records, 4*4096.0)
		require.Positive(t, one.Logs["enriched-message-input"])
		if runtime.GOOS == "linux" {
			require.NotNil(t, one.CPU)
			require.NotNil(t, one.BrokerCPU)
			require.Positive(t, *one.ResidentPeak)
			require.LessOrEqual(t, *one.Resident, *one.ResidentPeak)
		}
	}
	require.Equal(t, []string{"floor", "bare floor", "goka", "turntable at_least_once", "turntable exactly_once"}, who)
	require.Nil(t, r.Results[0].Ratio)
	for _, one := range r.Results[1:] {
		require.Positive(t, one.Ratio.PerSecond)
		require.Positive(t, one.Ratio.AloneP50)
	}
	require.Contains(t, out.String(), "turntable exactly_once")
	require.Empty(t, notes.String(), "no progress line but on a terminal")

	written, err := filepath.Glob(filepath.Join(profiles, "*", "cpu.pprof"))
	require.NoError(t, err)
	require.Len(t, written, 5)
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, left, "stores")
	require.Empty(t, childrenOf(os.Getpid()))
}

func TestOpenLoopKeepsItsRateWithSeveralInstances(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.json")
	args := append(append([]string{}, small...), "-rate", "100", "-turns", "50", "-instances", "2", "-storage", "memory",
		"-alone", "0", "-json", file)
	require.NoError(t, run(t.Context(), args, io.Discard, io.Discard))
	r := reportOf(t, file).Results[0]
	require.Equal(t, 50, r.Turns)
	require.Less(t, r.PerSecond, 110.0)
	require.Equal(t, 2, r.Instances)
	require.Nil(t, r.Alone)
}

func TestStoredSessionsAreRecovered(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.json")
	args := append(append([]string{}, small...), "-stored", "500", "-alone", "0", "-json", file)
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), args, &out, io.Discard))
	r := reportOf(t, file).Results[0]
	require.Positive(t, *r.Recovered)
	require.Positive(t, *r.Restarted)
	require.Equal(t, 500, r.Stored)
	require.Contains(t, out.String(), "500 stored sessions (at_least_once): recovered in")
}

func TestInterruptedRunStopsAllProcesses(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	args := append(append([]string{}, small...), "-turns", "0", "-duration", "1h")
	go func() { ended <- run(ctx, args, io.Discard, io.Discard) }()
	require.Eventually(t, func() bool {
		stores, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*", "bench-1", "*"))
		return err == nil && len(stores) > 0
	}, time.Minute, 10*time.Millisecond, "a processor has its store")
	stop()
	require.ErrorIs(t, <-ended, context.Canceled)
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, left)
	require.Empty(t, childrenOf(os.Getpid()))
}

// The program is measured by its process id: here a floor that the test started.
func TestExternalProcessIsMeasuredAndNotStopped(t *testing.T) {
	b, err := startBrokers(t.Context(), settings{})
	require.NoError(t, err)
	defer func() { require.NoError(t, b.stop()) }()
	_, err = b.createTopics(t.Context(), "stranger", 3)
	require.NoError(t, err)
	p, err := startChild(t.Context(), "stranger", childSpec{Kind: kindFloor, Agent: "stranger", Brokers: b.addrs}, readyTimeout)
	require.NoError(t, err)
	defer func() { require.NoError(t, p.stop()) }()

	file := filepath.Join(t.TempDir(), "out.json")
	args := append(append([]string{}, small...), "-brokers", b.addrs[0], "-agent", "stranger",
		"-pid", strconv.Itoa(p.pid), "-json", file)
	for range 2 {
		require.NoError(t, run(t.Context(), args, io.Discard, io.Discard), "its topics are older than the run")
	}
	r := reportOf(t, file).Results[0]
	require.Equal(t, subjectPID, r.Subject)
	require.Equal(t, 3, r.Partitions, "those that the topics have")
	require.NoError(t, p.running())
}

func TestErrorNamesAProcessorThatExits(t *testing.T) {
	args := append(append([]string{}, small...), "-command", "sleep 0", "-timeout", "10s")
	err := run(t.Context(), args, io.Discard, io.Discard)
	require.ErrorContains(t, err, "command 1 has ended")
}

func TestIdleProcessorIsAViolation(t *testing.T) {
	args := append(append([]string{}, small...), "-command", "sleep 60", "-timeout", "5s")
	err := run(t.Context(), args, io.Discard, io.Discard)
	require.ErrorIs(t, err, errViolation)
	require.ErrorContains(t, err, "6 turns are open")
}

func TestChildExitsWithItsParent(t *testing.T) {
	p, err := startChild(t.Context(), "broker", childSpec{Kind: kindBroker}, readyTimeout)
	require.NoError(t, err)
	require.NoError(t, p.stdin.Close())
	select {
	case <-p.exited:
	case <-time.After(time.Minute):
		t.Fatal("the child still runs")
	}
	require.NoError(t, p.err)
	require.ErrorIs(t, p.running(), errEnded)
}

func TestChildThatDoesNotExitIsKilled(t *testing.T) {
	if runtime.GOOS == "windows" {
		return
	}
	p, err := startCommand("deaf", `sh -c 'trap "" TERM; echo up; while :; do sleep 1; done'`)
	require.NoError(t, err)
	line, err := p.answer(t.Context(), readyTimeout)
	require.NoError(t, err)
	require.Equal(t, "up", line)
	require.ErrorContains(t, p.stopWithin(100*time.Millisecond), "did not end")
	require.ErrorContains(t, p.running(), "has ended")
}

func TestUnknownCommandsAndConfigurationsOfAChildAreRejected(t *testing.T) {
	require.ErrorContains(t, child(`{`, strings.NewReader(""), io.Discard), "configuration of a child")
	require.ErrorContains(t, child(`{"kind":"x"}`, strings.NewReader(""), io.Discard), `"x"`)
	var out bytes.Buffer
	executeCommands(strings.NewReader("dance\n"), &answerWriter{to: &out})
	require.Equal(t, "error unknown command: dance\n", out.String())
}
