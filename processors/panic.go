package processors

import (
	"fmt"
	"path"
	"runtime"
	"strings"
)

// PanicError is a recovered panic of a handler. It keeps the type of what was thrown and the place, not the text, which
// may quote a prompt.
type PanicError struct {
	Type  string // of the value given to panic, such as "runtime.boundsError"
	Place string // function and line that panicked, such as "turn.(*binding).onMessage (binding.go:42)"
}

// Error says what panicked where.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %s in %s", e.Type, e.Place) }

// recovered makes a PanicError of what recover returned. It is called by the deferred function that recovered.
func recovered(thrown any) *PanicError {
	return &PanicError{Type: fmt.Sprintf("%T", thrown), Place: panicPlace()}
}

// panicPlace is the first frame below the panic that is not the Go runtime's own.
func panicPlace() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	panicking := false
	for {
		f, more := frames.Next()
		own := !strings.HasPrefix(f.Function, "runtime.")
		if panicking && own && f.Function != "" {
			return fmt.Sprintf("%s (%s:%d)", path.Base(f.Function), path.Base(f.File), f.Line)
		}
		panicking = panicking || f.Function == "runtime.gopanic"
		if !more {
			return "an unknown place"
		}
	}
}
