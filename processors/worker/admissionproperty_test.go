package worker

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
)

// admissionWorld drives a state at random and checks it against a count of its own.
type admissionWorld struct {
	t       *rapid.T
	state   *admission
	now     time.Time
	needs   map[callID][]need
	session map[callID]string
	waits   map[callID]bool
	runs    map[callID]bool
	paused  map[string]time.Time
	taken   map[string][]takenUnits
	passed  map[callID]map[string]int // calls of each other session that began before a waiting call
}

type takenUnits struct {
	at   time.Time
	cost float64
}

func (w *admissionWorld) admit() {
	for _, id := range w.state.Admit(w.now) {
		require.True(w.t, w.waits[id], "a call begins once, and only if it waits")
		delete(w.waits, id)
		w.runs[id] = true
		for _, n := range w.needs[id] {
			require.False(w.t, w.paused[n.Bucket].After(w.now), "bucket %s is paused", n.Bucket)
			if n.Concurrency > 0 {
				require.LessOrEqual(w.t, w.running(n.Bucket), n.Concurrency, n.Bucket)
			}
			if n.Rate > 0 {
				w.taken[n.Bucket] = append(w.taken[n.Bucket], takenUnits{w.now, n.Cost})
				w.withinRate(n)
			}
		}
		for other := range w.waits {
			if w.session[other] != w.session[id] {
				w.passed[other][w.session[id]]++
			}
		}
	}
	// No call waits that could begin.
	for id := range w.waits {
		blocked := false
		for _, n := range w.needs[id] {
			blocked = blocked || w.paused[n.Bucket].After(w.now) || n.Rate > 0 ||
				n.Concurrency > 0 && w.running(n.Bucket) >= n.Concurrency
		}
		require.True(w.t, blocked, "call %d waits for nothing", id)
	}
}

func (w *admissionWorld) running(bucket string) (n int) {
	for id := range w.runs {
		for _, need := range w.needs[id] {
			if need.Bucket == bucket {
				n++
			}
		}
	}
	return n
}

// withinRate checks every interval that ends now: a bucket gives its burst, what it gets in the interval, and what the last
// waitingCall takes beyond that.
func (w *admissionWorld) withinRate(n need) {
	all := w.taken[n.Bucket]
	sum := 0.0
	for i := len(all) - 1; i >= 0; i-- {
		sum += all[i].cost
		interval := w.now.Sub(all[i].at).Seconds()
		require.LessOrEqual(w.t, sum, n.Burst+n.Rate*interval+n.Cost-1+0.001, "%s in %g s", n.Bucket, interval)
	}
}

func (w *admissionWorld) step(needs func() []need) {
	switch rapid.SampledFrom([]string{"ask", "ask", "ask", "leave", "leave", "give up", "pause", "time"}).Draw(w.t, "event") {
	case "ask":
		session := fmt.Sprint("s", rapid.IntRange(0, 3).Draw(w.t, "session"))
		list := needs()
		id := w.state.Ask(session, list, w.now)
		w.needs[id], w.session[id], w.waits[id], w.passed[id] = list, session, true, map[string]int{}
	case "leave":
		w.leave(w.runs)
	case "give up":
		w.leave(w.waits)
	case "pause":
		bucket := fmt.Sprint("b", rapid.IntRange(0, 2).Draw(w.t, "bucket"))
		until := w.now.Add(time.Duration(rapid.IntRange(0, 5000).Draw(w.t, "pause")) * time.Millisecond)
		w.state.Pause(bucket, until, w.now)
		if until.After(w.paused[bucket]) {
			w.paused[bucket] = until
		}
	case "time":
		w.now = w.now.Add(time.Duration(rapid.IntRange(1, 3000).Draw(w.t, "time")) * time.Millisecond)
	}
	w.admit()
}

func (w *admissionWorld) leave(from map[callID]bool) {
	for id := callID(1); id <= w.state.last; id++ {
		if from[id] && rapid.Bool().Draw(w.t, "this one") {
			w.state.Leave(id, w.now)
			delete(from, id)
			return
		}
	}
}

func newAdmissionWorld(t *rapid.T) *admissionWorld {
	return &admissionWorld{
		t: t, state: newAdmission(), now: admissionStart, needs: map[callID][]need{}, session: map[callID]string{}, waits: map[callID]bool{},
		runs: map[callID]bool{}, paused: map[string]time.Time{}, taken: map[string][]takenUnits{}, passed: map[callID]map[string]int{},
	}
}

func TestLimitsHoldAndEveryCallBegins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newAdmissionWorld(t)
		limits := []need{
			slotsOf("b0", rapid.IntRange(1, 4).Draw(t, "slots")), slotsOf("b1", rapid.IntRange(0, 2).Draw(t, "slots of a key")),
			perMinute("b2", float64(rapid.IntRange(1, 120).Draw(t, "rate")), float64(rapid.IntRange(1, 5).Draw(t, "burst")),
				float64(rapid.IntRange(1, 9).Draw(t, "cost"))),
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			w.step(func() (list []need) {
				for i, n := range limits {
					if rapid.Bool().Draw(t, fmt.Sprint("needs ", i)) {
						list = append(list, n)
					}
				}
				return list
			})
		}
		for range 10_000 {
			if len(w.waits)+len(w.runs) == 0 {
				break
			}
			for id := range w.runs {
				w.state.Leave(id, w.now)
				delete(w.runs, id)
			}
			w.admit()
			if at, ok := w.state.Next(w.now); ok && len(w.runs) == 0 {
				require.True(t, at.After(w.now), "a call that may begin has begun")
				w.now = at
				w.admit()
			}
		}
		require.Empty(t, w.waits, "a call never begins")
		require.Empty(t, w.state.sessions)
		w.now = w.now.Add(24 * time.Hour)
		for name, b := range w.state.buckets {
			require.True(t, b.unused(w.now), name)
		}
	})
}

// Before a call begins, each other session has its turn of that round, and one that it was owed. Each call of the same session
// that waits before it takes another round.
func TestSessionsTakeTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newAdmissionWorld(t)
		n := rapid.IntRange(1, 3).Draw(t, "slots")
		ahead := map[callID]int{} // calls of the session that waited when the call was added
		for range rapid.IntRange(0, 80).Draw(t, "steps") {
			before := w.state.last
			w.step(func() []need { return []need{slotsOf("all", n)} })
			if id := w.state.last; id > before {
				for other := range w.needs {
					if other != id && w.session[other] == w.session[id] && w.waits[other] {
						ahead[id]++
					}
				}
			}
			for id := range w.waits {
				for session, passed := range w.passed[id] {
					require.LessOrEqual(t, passed, ahead[id]+2, "%s passed call %d of %s", session, id, w.session[id])
				}
			}
		}
	})
}
