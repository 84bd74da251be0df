package main

import (
	"fmt"
	"io"
	"sync"
)

// screen prints lines. Its methods may be called concurrently.
type screen struct {
	mu  sync.Mutex
	out io.Writer
}

// line prints one fact.
func (s *screen) line(who, format string, args ...any) {
	s.print("  %-11s %s\n", who, fmt.Sprintf(format, args...))
}

// title begins a step.
func (s *screen) title(text string) { s.print("\n%s\n", text) }

func (s *screen) print(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, format, args...)
}
