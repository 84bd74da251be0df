// Package failing runs test functions that must fail, and tells how they did.
package failing

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
)

// TB is passed to a test function in place of a *testing.T. Its methods are safe for concurrent use.
type TB struct {
	mu       sync.Mutex
	messages []string
	logged   []string
	failed   bool
	cleanups []func()
}

// Run runs a test function and its cleanups as package testing does, and returns its TB.
func Run(body func(tb *TB)) *TB {
	tb := &TB{}
	tb.Step(func() { body(tb) })
	tb.End()
	return tb
}

// Step runs a part of a test function, until it ends or fails, and returns the texts of its errors.
func (tb *TB) Step(f func()) string {
	before := len(tb.errors())
	done := make(chan struct{})
	go func() { // Fatalf ends it
		defer close(done)
		f()
	}()
	<-done
	return strings.Join(tb.errors()[before:], "\n")
}

// End runs the cleanups.
func (tb *TB) End() {
	for i := len(tb.cleanups) - 1; i >= 0; i-- {
		tb.Step(tb.cleanups[i])
	}
}

func (tb *TB) errors() []string {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	return tb.messages
}

// Errors returns the texts of its errors, one a line.
func (tb *TB) Errors() string { return strings.Join(tb.errors(), "\n") }

// Log returns what it has logged, one text a line.
func (tb *TB) Log() string {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	return strings.Join(tb.logged, "\n")
}

// Helper does nothing.
func (tb *TB) Helper() {}

// Cleanup adds a function that Run calls at the end, the last one first.
func (tb *TB) Cleanup(f func()) { tb.cleanups = append(tb.cleanups, f) }

// Errorf fails the test.
func (tb *TB) Errorf(format string, args ...any) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.messages, tb.failed = append(tb.messages, fmt.Sprintf(format, args...)), true
}

// Fatalf fails and ends the test.
func (tb *TB) Fatalf(format string, args ...any) {
	tb.Errorf(format, args...)
	runtime.Goexit()
}

// Fatal fails and ends the test.
func (tb *TB) Fatal(args ...any) {
	tb.Errorf("%s", fmt.Sprint(args...))
	runtime.Goexit()
}

// Logf adds a text to Log.
func (tb *TB) Logf(format string, args ...any) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.logged = append(tb.logged, fmt.Sprintf(format, args...))
}

// Failed reports whether the test has failed.
func (tb *TB) Failed() bool {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	return tb.failed
}
