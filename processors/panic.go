package processors

import (
	"fmt"
	"path"
	"runtime"
	"strings"
)

// PanicError is a recovered panic of a handler. The panic value may contain prompt text, so only its type and the place
// are included.
type PanicError struct {
	Type  string // of the value given to panic, such as "runtime.boundsError"
	Place string // function and line that panicked, such as "turn.(*binding).onMessage (binding.go:42)"
}

// Error names the type and the place.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %s in %s", e.Type, e.Place) }

// Recovered returns the PanicError of a value that recover returned. Call it in the deferred function that recovered.
func Recovered(value any) *PanicError {
	return &PanicError{Type: fmt.Sprintf("%T", value), Place: panicPlace()}
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
