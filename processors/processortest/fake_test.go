package processortest_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/turntable-streams/turntable/processors/processortest"
)

// fakeTB is a TB for tests that must fail.
type fakeTB struct {
	mu       sync.Mutex
	messages []string
	logged   []string
	failed   bool
	cleanups []func()
}

// runFake runs a test function and its cleanups as package testing does, and returns its TB.
func runFake(body func(tb processortest.TB)) *fakeTB {
	tb := &fakeTB{}
	tb.goexit(func() { body(tb) })
	for i := len(tb.cleanups) - 1; i >= 0; i-- {
		tb.goexit(tb.cleanups[i])
	}
	return tb
}

func (tb *fakeTB) goexit(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

func (tb *fakeTB) errorText() string {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	return strings.Join(tb.messages, "\n")
}

func (tb *fakeTB) log() string {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	return strings.Join(tb.logged, "\n")
}

func (tb *fakeTB) Helper() {}

func (tb *fakeTB) Cleanup(f func()) { tb.cleanups = append(tb.cleanups, f) }

func (tb *fakeTB) Errorf(format string, args ...any) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.messages, tb.failed = append(tb.messages, fmt.Sprintf(format, args...)), true
}

func (tb *fakeTB) Fatalf(format string, args ...any) {
	tb.Errorf(format, args...)
	runtime.Goexit()
}

func (tb *fakeTB) Fatal(args ...any) {
	tb.Errorf("%s", fmt.Sprint(args...))
	runtime.Goexit()
}

func (tb *fakeTB) Logf(format string, args ...any) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.logged = append(tb.logged, fmt.Sprintf(format, args...))
}

func (tb *fakeTB) Failed() bool {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	return tb.failed
}
