// Package source is the interface between the core of a worker and the two ways in which it gets records from Kafka: share
// groups and consumer groups.
//
// The division of work: a source acquires records, keeps them, and tells the broker what became of them. The core decides
// what becomes of them: it calls the handler, retries, limits attempts, writes dead letters and bounds how long a stop may
// take. A source therefore has no retry policy, and a failed handler never makes a member leave its group.
package source

import (
	"context"
	"errors"

	"github.com/turntable-streams/turntable/processors"
)

// ErrLost is the cause of a handle context whose record this process no longer holds: its lock expired, or its partition
// moved to another member and the handover time has passed. Someone else gets the record.
var ErrLost = errors.New("worker: the record was lost to another worker")

// Delivery is a record that this process holds.
type Delivery struct {
	Record processors.Inbound
	// Count is how often the record was delivered, this delivery included, as far as the source knows. At least 1.
	Count int
	// Remaining is how often the source can deliver the record after this delivery. At 0, a record that is released or
	// lost is gone: the core ends it without calling the handler. Unlimited if negative.
	Remaining int
	// Attempts is how often a handler was called for the record before this delivery, as far as the source knows. An
	// attempt that ended with its process counts.
	Attempts int
	// Repeated says that a handler may have been called for the record before, so that its effects may exist already.
	Repeated bool
	// Failed is called after each call of the handler that failed, with the number of attempts so far, earlier deliveries
	// included. A source that can store the number does; the next delivery has it in Attempts. Nil if the source cannot.
	Failed func(attempts int)
	// Confirm ends the delivery's context if the record is lost. The core calls it right before a call begins, because the
	// process may have been suspended since the delivery, and what watches the record may run later than the handler. Confirm
	// may ask the broker; it returns when it knows, or when ctx ends. Nil if the source cannot lose the record.
	Confirm func(ctx context.Context)
	// Wait is called when the record begins to wait for a limit, and when it ends. A record that waits does not count toward
	// Config.Concurrency. Nil if the source does not need to know.
	Wait func(waiting bool)
}

// Verdict is what becomes of a record after its delivery. The zero value is Released: it loses nothing.
type Verdict int

// The verdicts.
const (
	// Released: the record is delivered again, soon, to any worker of the group.
	Released Verdict = iota
	// Settled: the record is never delivered again.
	Settled
)

// String returns the name of the verdict.
func (v Verdict) String() string {
	if v == Settled {
		return "settled"
	}
	return "released"
}

// Handle handles one delivery and returns what becomes of the record. It is called from several goroutines and blocks as
// long as the record is handled. It never panics.
//
// A source ends ctx only when the record is lost, with a cause that wraps ErrLost; it does not end ctx when it stops. The
// core ends its calls itself when the worker stops. After the end of ctx, Handle returns within AbandonAfter; the source then
// ignores the verdict, because the record belongs to someone else.
type Handle func(ctx context.Context, d Delivery) Verdict

// Source delivers records of some topics as a member of a group.
type Source interface {
	// Run joins the group and calls handle for each record that it acquires, for at most Config.Concurrency records at a time
	// and Config.Waiting more that wait, until
	// ctx ends. Then it acquires no more, waits until all calls of handle have returned (the core bounds this), tells the
	// broker their verdicts, leaves the group and returns nil. It keeps its records and its membership while it waits.
	//
	// Run waits for unavailable brokers and missing topics with backoff. It returns an error only if waiting cannot help:
	// a setting that no broker accepts, or a member fenced by another one with the same instance ID.
	Run(ctx context.Context, handle Handle) error
	// Status returns a snapshot. It does not block and may be called at any time.
	Status() Status
}

// Status is a snapshot of a source.
type Status struct {
	// Joined says that the source is a member of its group and asks the broker for records.
	Joined bool
	// Err is the last error of the source, nil if there was none. It is kept after the source has recovered.
	Err error
	// Lag is the number of records that are not settled, by topic and partition: in a consumer group for the partitions that
	// this member owns, in a share group for all. Nil if the source does not know it.
	Lag map[string]map[int32]int64
}
