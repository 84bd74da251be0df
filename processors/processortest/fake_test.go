package processortest_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/turntable-streams/turntable/processors/processortest"
)

// fakeTB is a test whose failure is what we test.
type fakeTB struct {
	mu       sync.Mutex
	said     []string
	logged   []string
	failed   bool
	cleanups []func()
}

// runFake runs a test function as the testing package would, cleanups included, and returns what it complained about.
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

func (tb *fakeTB) complaints() string {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	return strings.Join(tb.said, "\n")
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
	tb.said, tb.failed = append(tb.said, fmt.Sprintf(format, args...)), true
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
