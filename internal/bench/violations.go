package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// violations collects the violations of the checks.
type violations struct {
	counts  map[string]int // by check
	samples []string
	repeats map[string]int // by kind of record
}

const maxSamples = 8

// addCount adds violations that do not belong to a session.
func (f *violations) addCount(promise string, n int) {
	if f.counts == nil {
		f.counts = map[string]int{}
	}
	f.counts[promise] += n
}

func (f *violations) add(promise string, s *session, how string) {
	f.addCount(promise, 1)
	if len(f.samples) < maxSamples {
		f.samples = append(f.samples, fmt.Sprintf("%s: session %s, turn %d: %s", promise, s.name, s.turn, how))
	}
}

// repeated records a repeat, or a record that no session waits for.
func (f *violations) repeated(s *session, kind string) {
	if f.repeats == nil {
		f.repeats = map[string]int{}
	}
	f.repeats[kind]++
	if len(f.samples) < maxSamples {
		f.samples = append(f.samples, fmt.Sprintf("repeat: session %s, turn %d: %s", s.name, s.turn, kind))
	}
}

func (f *violations) repeatCount() int {
	n := 0
	for _, c := range f.repeats {
		n += c
	}
	return n
}

// err returns an error that lists the violations, or nil. Repeats count only if they are not allowed.
func (f *violations) err(repeatsAllowed bool) error {
	var parts []string
	for _, promise := range slices.Sorted(maps.Keys(f.counts)) {
		parts = append(parts, fmt.Sprintf("%d x %s", f.counts[promise], promise))
	}
	if n := f.repeatCount(); n > 0 && !repeatsAllowed {
		parts = append(parts, fmt.Sprintf("%d repeats without a crash", n))
	}
	if len(parts) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s\n  %s", errViolation, strings.Join(parts, ", "), strings.Join(f.samples, "\n  "))
}
