package main

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// phase is a number of turns, or turns that begin within a duration.
type phase struct {
	turns       int
	duration    time.Duration
	concurrency int
	rate        float64 // turns per second to begin, whether or not others end; 0: closed loop
	tools       int
	plain       bool // turns that create the initial histories
}

// tally counts a phase.
type tally struct {
	phase
	start, last  time.Time
	begun, ended int
	elapsed      time.Duration
	latency      *hdrhistogram.Histogram // microseconds
}

func newTally(p phase, now time.Time) *tally {
	if p.turns == 0 && p.duration > 0 {
		p.turns = math.MaxInt
	}
	if p.rate > 0 {
		p.concurrency = math.MaxInt
	}
	return &tally{phase: p, start: now, last: now, latency: hdrhistogram.New(1, time.Hour.Microseconds(), 3)}
}

// next returns when the next turn should begin. In an open loop that can be in the past: the latency of a turn that
// begins late includes the delay.
func (t *tally) next(now time.Time) (time.Time, bool) {
	due := now
	if t.rate > 0 {
		due = t.start.Add(time.Duration(float64(t.begun) / t.rate * float64(time.Second)))
	}
	if t.begun >= t.turns || t.duration > 0 && due.Sub(t.start) >= t.duration {
		return time.Time{}, false
	}
	return due, true
}

// over reports whether no further turn begins.
func (t *tally) over(now time.Time) bool {
	_, more := t.next(now)
	return !more
}

func (t *tally) done(s *session, now time.Time) {
	t.ended++
	t.last = now
	_ = t.latency.RecordValue(max(1, now.Sub(s.began).Microseconds()))
}

func (t *tally) end() { t.elapsed = t.last.Sub(t.start) }

func (t *tally) perSecond() float64 {
	if t.elapsed <= 0 {
		return 0
	}
	return float64(t.ended) / t.elapsed.Seconds()
}

// quantiles of the latency, in milliseconds.
func (t *tally) quantiles() latency {
	ms := func(q float64) float64 { return float64(t.latency.ValueAtQuantile(q)) / 1000 }
	return latency{P50: ms(50), P90: ms(90), P99: ms(99), Max: float64(t.latency.Max()) / 1000}
}

// latency of a turn in milliseconds, from its scheduled begin to its output.
type latency struct {
	P50 float64 `json:"p50_ms"`
	P90 float64 `json:"p90_ms"`
	P99 float64 `json:"p99_ms"`
	Max float64 `json:"max_ms"`
}
