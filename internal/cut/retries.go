package cut

import (
	"errors"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

// Retries says how often a handler that fails is called with the same record or deadline. Only the record's own partition
// waits in between.
type Retries struct {
	// Limit is the number of attempts after which the record is given up; negative: no limit.
	Limit int
	// First and Longest are the waits between attempts: each is twice the one before.
	First, Longest time.Duration
	Attempts       *Attempts
	// Timer is the virtual topic of deadlines.
	Timer string
	// Committed returns how often the handler of a record had failed when the record's offset was committed; 0 if another
	// offset is committed. It may block for a request.
	Committed func(p Partition, offset int64) int
	// Failed is called before a wait.
	Failed func(err error, attempts int, wait time.Duration)
}

// wait returns the wait after a number of failed attempts.
func (r *Retries) wait(failed int) time.Duration {
	wait := r.First
	for range failed - 1 {
		if wait >= r.Longest {
			break
		}
		wait *= 2
	}
	return min(wait, r.Longest)
}

// isOver reports whether a record is given up after a number of failed attempts.
func (r *Retries) isOver(failed int) bool { return r.Limit >= 0 && failed >= r.Limit }

// retrying is the state of a callback whose handler may fail.
type retrying struct {
	series *Series // nil in tests of contexts
	failed int     // attempts; 0: the handler has not failed in this callback
	ended  bool    // the callback must have no effects
}

// Ended implements runtimeapi.Retrier.
func (c *callbackContext) Ended() bool { return c.retrying.ended }

// HandlerFailed implements runtimeapi.Retrier.
func (c *callbackContext) HandlerFailed(err error) (verdict runtimeapi.Verdict, attempts int) {
	r, s := c.wrap.Retries, c.retrying.series
	if r == nil || s == nil {
		return runtimeapi.Fail, 0
	}
	p, of := partitionOf(c.gokaContext), Attempt{Offset: c.Offset()}
	if p.Topic == r.Timer {
		of.Key = c.Key()
	}
	failed := r.count(c.retrying, p, of)
	c.retrying.failed = failed
	if r.isOver(failed) {
		return runtimeapi.GiveUp, failed
	}
	wait := r.wait(failed)
	r.Failed(err, failed, wait)
	s.Pause(p, of.Offset)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		if s.Resume(p, of.Offset) {
			return runtimeapi.Retry, failed
		}
		<-s.Context().Done()
	case <-s.Context().Done():
	}
	return runtimeapi.Ended, failed
}

// FailAtRecord implements runtimeapi.Retrier.
func (c *callbackContext) FailAtRecord(err error) {
	s := c.retrying.series
	if s == nil {
		c.Fail(err)
	}
	s.Pause(partitionOf(c.gokaContext), c.Offset())
	s.FailAfterCut(err)
	<-s.Context().Done()
	if errors.Is(s.Err(), err) { // otherwise the generation ended for another reason
		c.wrap.Failed(err)
	}
}

// count counts a failed attempt and returns the number of them. At the first one in this process it adds those of the
// former owner of the partition. They are committed with the offset of a record that is the first of its partition.
func (r *Retries) count(c retrying, p Partition, of Attempt) int {
	failed := max(c.failed, r.Attempts.Of(p, of))
	if c.failed == 0 && of.Key == "" && c.series.IsFirst(p, of.Offset) {
		failed = max(failed, r.Committed(p, of.Offset))
	}
	failed++
	r.Attempts.Set(p, of, failed)
	return failed
}

func partitionOf(ctx goka.Context) Partition { return Partition{string(ctx.Topic()), ctx.Partition()} }
