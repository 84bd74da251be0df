package worker

import (
	"context"
	"fmt"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/worker/internal/source"
)

// Handler handles one record. It is called from several goroutines. Nil means that the record is settled: its effects are
// acknowledged, and it is not delivered again. After an error or a panic, the retry policy applies.
//
// ctx ends when the worker no longer holds the record (context.Cause is ErrLost), when the worker stops and its grace period
// has passed (ErrStopping), or after the timeout (context.DeadlineExceeded). A handler that returns an error after ErrLost or
// ErrStopping has not failed: the record is delivered again. A handler that ignores the end of ctx is abandoned after a
// second: its goroutine continues, its result has no effect, and its slot is free.
type Handler func(ctx context.Context, r Record) error

// Record is a record that a worker handles.
type Record struct {
	processors.Inbound
	// Deliveries is how often the record was delivered, including this delivery, as far as the broker knows. At least 1.
	Deliveries int
	// Attempts is how often the handler was called for the record before, in this process and, as far as known, in others.
	Attempts int
	// Repeated says that the handler may have been called for the record before. Look for the published result before making
	// a call that costs money.
	Repeated bool
	// Last reports that this call is the last attempt: if it fails, the record is dead-lettered.
	Last bool
}

// The causes with which the context of a handler ends. See Handler.
var (
	// ErrStopping is the cause when the worker stops and its grace period (Config.Grace) has passed.
	ErrStopping = fmt.Errorf("worker: the worker stops")
	// ErrLost is the cause when the worker no longer holds the record, because its lock expired or its partition moved.
	ErrLost = source.ErrLost
)

// PanicError is the failure of a handler that panicked. The panic value may contain payloads, so only its type and the place
// are included.
type PanicError = processors.PanicError
