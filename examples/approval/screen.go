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

// line prints who does what.
func (s *screen) line(who, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "  %-7s %s\n", who, fmt.Sprintf(format, args...))
}

func (s *screen) title(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "\n%s\n", text)
}
