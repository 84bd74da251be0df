package turns

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/worker"
)

// began and ended are the calls of the slow record.
func (r *rig) slowCalls() (began, ended int) { return r.count("began slow "), r.count("ended slow ") }

func TestLongCallIsMadeOnceWhileWorkersJoin(t *testing.T) {
	t.Parallel()
	r := newRig(t, best())
	r.put("slow")
	r.spawn("a")
	r.until("began slow", 1)
	r.spawn("b")
	r.put(names("fast", 0, 20)...)
	r.fastOnce(20)
	r.until("ended slow", 1)
	began, ended := r.slowCalls()
	require.Equal(t, []int{1, 1}, []int{began, ended})
	r.fastOnce(20)
}

func TestKillRepeatsOnlyTheRunningCallAndSoon(t *testing.T) {
	t.Parallel()
	needShareGroups(t)
	r := newRig(t, worker.ShareGroup)
	a := r.spawn("a")
	r.put("slow")
	r.until("began slow a", 1)
	r.put(names("fast", 0, 20)...)
	r.fastOnce(20)
	r.spawn("b")
	r.put(names("fast", 20, 40)...)
	r.fastOnce(40)
	// A result is written before its record is acknowledged. A kill between the two repeats the call.
	require.Never(t, func() bool { return r.count("began fast") > 40 }, time.Second, 50*time.Millisecond)
	watch := stopwatch()
	require.NoError(t, a.Kill())
	r.until("began slow b 2", 1)
	t.Logf("redelivered %s after the kill", watch())
	r.until("ended slow b", 1)
	began, ended := r.slowCalls()
	require.Equal(t, []int{2, 1}, []int{began, ended})
	r.fastOnce(40)
}

func TestHungProcessLosesItsRecord(t *testing.T) {
	t.Parallel()
	needShareGroups(t)
	r := newRig(t, worker.ShareGroup)
	a := r.spawn("a")
	r.put("slow")
	r.until("began slow a", 1)
	r.spawn("b")
	require.NoError(t, a.Pause())
	watch := stopwatch()
	r.until("began slow b", 1)
	t.Logf("redelivered %s after the process was stopped", watch())
	watch = stopwatch()
	require.NoError(t, a.Resume())
	r.until("lost slow a", 1)
	t.Logf("its call was cancelled %s after it continued", watch())
	r.until("ended slow b", 1)
	began, ended := r.slowCalls()
	require.Equal(t, []int{2, 1}, []int{began, ended})
}

func TestDeploymentRepeatsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, best())
	a := r.spawn("a")
	r.put(names("fast", 0, 30)...)
	r.until("ended fast", 5)
	r.spawn("b")
	stopped := make(chan error, 1)
	go func() { stopped <- a.Stop() }()
	r.put(names("fast", 30, 60)...)
	r.fastOnce(60)
	require.NoError(t, <-stopped)
}

// stopwatch returns a function that tells the time since it was made.
func stopwatch() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start).Round(10 * time.Millisecond) }
}
