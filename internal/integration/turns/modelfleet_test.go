package turns

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/processors/worker"
)

// fleet is the model workers of an agent, each a process.
type fleet struct {
	*agent
	mode    worker.Mode
	model   *provider
	running []*modelWorker
	latest  *modelWorker            // after a kill
	all     map[string]*modelWorker // by name
}

type modelWorker struct {
	*kill.Process
	name string
	// failed and resumed are when the test has begun to kill or to pause the process, and when it continues.
	failed, resumed time.Time
}

// paused returns for how long the process was paused.
func (w *modelWorker) paused() time.Duration { return w.resumed.Sub(w.failed) }

func (f *fleet) start() *modelWorker {
	f.Helper()
	w := &modelWorker{name: fmt.Sprintf("w-%d", len(f.all))}
	w.Process = kill.Start(f, modelProgram, modelChild{f.name, w.name, f.brokers, f.mode, f.model.server.URL})
	f.all[w.name] = w
	return w
}

// joined waits until a worker has called the model.
func (f *fleet) joined(w *modelWorker) {
	f.Helper()
	f.eventually(func() bool {
		return f.model.count(func(c modelCall) bool { return c.worker == w.name }) > 0
	}, "a new worker gets no call")
}

// deploy replaces each worker: the new one joins, then the old one stops.
func (f *fleet) deploy() {
	f.Helper()
	for i, old := range f.running {
		f.running[i] = f.start()
		f.joined(f.running[i])
		f.stop(old)
	}
}

func (f *fleet) stop(w *modelWorker) {
	f.Helper()
	require.NoError(f, w.Stop())
}

// Kill kills the worker.
func (w *modelWorker) Kill() error {
	w.failed = time.Now()
	return w.Process.Kill()
}

// launch starts the nth worker again if it was killed, and returns it.
func (f *fleet) launch(n int) kill.Victim {
	if !f.running[n].failed.IsZero() {
		f.running[n] = f.start()
		f.latest = f.running[n]
	}
	return f.running[n]
}

// hang pauses a worker until others have made its running calls again, and continues it.
func (f *fleet) hang() {
	f.Helper()
	w := f.running[0]
	var held []string
	f.eventually(func() bool {
		held = f.heldBy(w)
		return len(held) > 0
	}, "the worker gets no call")
	w.failed = time.Now()
	require.NoError(f, w.Pause())
	held = f.heldBy(w)
	f.eventually(func() bool {
		for _, step := range held {
			calls := f.model.all()[step]
			f.mu.Lock()
			_, responded := f.responses[calls[0].session]
			f.mu.Unlock()
			if !responded {
				return false
			}
		}
		return time.Since(w.failed) > max(modelLock, modelSession)*3/2
	}, "a call of the hung worker is not made again")
	w.resumed = time.Now()
	require.NoError(f, w.Resume())
	f.eventually(func() bool {
		return f.model.count(func(c modelCall) bool { return c.worker == w.name && c.began.After(w.resumed) && c.answered }) > 0
	}, "the worker that was paused gets no call")
}

// heldBy returns the steps whose last call is the worker's and runs.
func (f *fleet) heldBy(w *modelWorker) (steps []string) {
	for step, calls := range f.model.all() {
		if last := calls[len(calls)-1]; last.worker == w.name && last.ended.IsZero() {
			steps = append(steps, step)
		}
	}
	return steps
}

// excused reports whether a call may be made again: its worker was killed or paused before the response was on its topic.
func (f *fleet) excused(c modelCall) bool {
	w := f.all[c.worker]
	if w.failed.IsZero() || !w.resumed.IsZero() && c.decided.After(w.resumed) {
		return false
	}
	responded, ok := f.responses[c.session]
	return !ok || responded.After(w.failed)
}

// tally is what the provider and the users have seen.
type tally struct {
	steps, calls, excused int
	failed                int // steps without a response: all of their deliveries were interrupted
	// Of the time in which a session waited and no call of its step was running: the most of a session, in all and without
	// a break. A session whose calls were interrupted has several such times.
	longest, longestGap time.Duration
	slow                int // sessions that waited without a break for longer than besideCalls
}

func (v tally) String() string {
	return fmt.Sprintf("%d steps, %d running calls hit, %d calls repeated, %.2f calls per step, %d steps failed, longest wait %s, "+
		"of a session with several %s", v.steps, v.excused, v.calls-v.steps, float64(v.calls)/float64(v.steps), v.failed,
		round(v.longestGap), round(v.longest))
}

// besideCalls is how long a session may wait for a call, or after it, without a break.
const besideCalls = 2 * time.Second

// judgeCalls checks that no call was made again without an excuse, in the sessions that were sent in a period.
func (f *fleet) judgeCalls(from, to time.Time) (v tally) {
	f.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	bySession := map[string]string{}
	for step, calls := range f.model.all() {
		session := calls[0].session
		require.NotContains(f, bySession, session, "two steps in a session")
		bySession[session] = step
		if f.sent[session].Before(from) || !f.sent[session].Before(to) {
			continue
		}
		excused := 0
		for _, c := range calls {
			if f.excused(c) {
				excused++
			}
		}
		if len(calls) > 1+excused {
			require.Fail(f, "a call was made again without a reason", f.story(session, calls))
		}
		if _, responded := f.responses[session]; !responded {
			v.failed++
			// Some deliveries end before the call, while the worker looks for an earlier response.
			if excused == 0 {
				require.Fail(f, "a step failed although none of its calls was interrupted", f.story(session, calls))
			}
		}
		v.steps, v.calls, v.excused = v.steps+1, v.calls+len(calls), v.excused+excused
		waited, gap := waits(f.sent[session], f.outputs[session], calls)
		v.longest, v.longestGap = max(v.longest, waited), max(v.longestGap, gap)
		if gap > besideCalls {
			v.slow++
			f.Logf("%s waited %s: %s", session, round(gap), f.story(session, calls))
		}
	}
	return v
}

// waits returns for how long no call ran between two times: in all, and the longest time without a break.
func waits(from, to time.Time, calls []modelCall) (sum, longest time.Duration) {
	idle := func(until time.Time) {
		if gap := until.Sub(from); gap > 0 {
			sum, longest = sum+gap, max(longest, gap)
		}
	}
	for _, c := range calls { // in the order of their begins
		if c.began.After(to) {
			break
		}
		idle(c.began)
		if c.ended.After(from) {
			from = c.ended
		}
	}
	idle(to)
	return sum, longest
}

// story is what happened to a session, for messages of failed tests.
func (f *fleet) story(session string, calls []modelCall) string {
	sent := f.sent[session]
	text := fmt.Sprintf("sent at %s", sent.Format("15:04:05.000"))
	for _, c := range calls {
		text += fmt.Sprintf("\n%s: began %s, ended %s, answered %t", c.worker, c.began.Sub(sent), c.ended.Sub(sent), c.answered)
		if w := f.all[c.worker]; !w.failed.IsZero() {
			text += fmt.Sprintf("; killed or paused %s", w.failed.Sub(sent))
			if !w.resumed.IsZero() {
				text += fmt.Sprintf(" to %s", w.resumed.Sub(sent))
			}
		}
	}
	return text + fmt.Sprintf("\nresponse %s, output %s", f.responses[session].Sub(sent), f.outputs[session].Sub(sent))
}
