package worker

import (
	"errors"
	"fmt"
	"time"

	"github.com/turntable-streams/turntable/processors/worker/internal/source"
)

// RetryPolicy says how often and how soon a record is handled again after its handler has failed. The worker holds the
// record while it waits. The record keeps its slot, unless the worker lets records wait outside of the slots (Config.Waiting).
type RetryPolicy struct {
	// Backoff is the wait before the second attempt. Each further wait is twice the one before. The default is 500 ms. An
	// error with a method RetryAfter() time.Duration extends the wait to at least that time, also beyond MaxBackoff.
	Backoff time.Duration
	// MaxBackoff is the longest wait. The default is 30 s.
	MaxBackoff time.Duration
	// Jitter is the part of each wait that is random, from 0 to 1. The default is 0.2; a negative value means 0.
	Jitter float64
	// Limit is the largest number of attempts for a record, at least 1. The default is 5. Attempts that ended because their
	// process crashed count, as far as the broker knows of them. After the last one the record is dead-lettered.
	Limit int
	// Retryable reports whether to retry after a failure. If not, the record is dead-lettered. By default, every failure is
	// retried, including a panic.
	Retryable func(error) bool
}

func (p RetryPolicy) withDefaults() RetryPolicy {
	if p.Backoff == 0 {
		p.Backoff = 500 * time.Millisecond
	}
	if p.MaxBackoff == 0 {
		p.MaxBackoff = max(30*time.Second, p.Backoff)
	}
	if p.Jitter == 0 {
		p.Jitter = 0.2
	}
	if p.Limit == 0 {
		p.Limit = 5
	}
	return p
}

// Invalid returns an error if a field is out of range.
func (p RetryPolicy) Invalid() error {
	p = p.withDefaults()

	switch {
	case p.Backoff < 0 || p.MaxBackoff < p.Backoff:
		return fmt.Errorf("backoff from %s to %s", p.Backoff, p.MaxBackoff)
	case p.Jitter > 1:
		return fmt.Errorf("jitter %g, want at most 1", p.Jitter)
	case p.Limit < 1:
		return fmt.Errorf("limit %d, want at least 1", p.Limit)
	default:
		return nil
	}
}

// action is what the worker does next with a record.
type action int

const (
	call    action = iota // call the handler, after the wait
	settle                // the record is finished
	release               // the record is delivered again
	bury                  // dead-letter the record, then it is finished
)

// attempt is what the rules know of a record before or after a call of its handler.
type attempt struct {
	number    int // calls of the handler so far, earlier deliveries included
	remaining int // deliveries after this one; negative if unlimited
}

// Last reports whether the next attempt, after the given number of attempts, is the last one.
func (p RetryPolicy) Last(attempts int) bool { return attempts+1 >= p.withDefaults().Limit }

// Wait returns the longest wait after the given number of attempts, the last of which failed with err. The jitter can make
// the actual wait shorter.
func (p RetryPolicy) Wait(attempts int, err error) time.Duration {
	return p.withDefaults().wait(attempts, err, 0)
}

// delayed is an error that says how long to wait before the next attempt, such as that of a service that is overloaded.
type delayed interface{ RetryAfter() time.Duration }

// ErrDeliveries is the reason of a dead letter whose record was delivered as often as the broker or the retry policy allows
// without an outcome: its handler ended each time with its process, or was interrupted.
var ErrDeliveries = errors.New("worker: the record was delivered too often without an outcome")

// first decides what happens to a record that was just delivered. On the broker's last delivery the handler is not called:
// if the process ended during the call, the broker would drop the record without a result.
func (p RetryPolicy) first(a attempt) action {
	if a.remaining == 0 || a.number >= p.Limit {
		return bury
	}
	return call
}

// after decides what happens after a call of the handler, which is a.number. interrupted says that the call's context has
// ended; its error then says nothing about the record. random is from 0 to 1.
func (p RetryPolicy) after(a attempt, err error, interrupted bool, random float64) (next action, wait time.Duration) {
	switch {
	case err == nil:
		return settle, 0
	case interrupted:
		return release, 0
	case a.number >= p.Limit || p.Retryable != nil && !p.Retryable(err):
		return bury, 0
	default:
		return call, p.wait(a.number, err, random)
	}
}

// wait returns the wait after the given attempt, which failed with err.
func (p RetryPolicy) wait(number int, err error, random float64) time.Duration {
	wait := p.Backoff
	for range number - 1 {
		if wait >= p.MaxBackoff/2 {
			wait = p.MaxBackoff
			break
		}
		wait *= 2
	}
	wait -= time.Duration(max(p.Jitter, 0) * random * float64(wait))
	var d delayed
	if errors.As(err, &d) {
		wait = max(wait, d.RetryAfter())
	}
	return wait
}

func attemptOf(d source.Delivery) attempt { return attempt{d.Attempts, d.Remaining} }
