package cut

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
)

// Made describes a cut whose offsets are committed.
type Made struct {
	Records int           // handed out since the previous cut, timers included
	Age     time.Duration // from its first record to the moment with nothing in flight
	Took    time.Duration // to commit its offsets
	// Progress says that records were handled since the member got its partitions, other than those whose handlers fail.
	Progress bool
}

// Series makes the cuts of one member in one generation of its group. Every source of effects passes it: records and timers
// call Acquire before they are handed to Goka, and Release once Goka has marked them. It is safe for concurrent
// use.
type Series struct {
	closer Closer
	policy Policy
	member func() Member
	layers func() []Layer
	table  Table // nil: no rows are written
	made   func(Made)
	log    *zap.Logger

	// ctx is the context of the session that Goka gets: it ends after the drain.
	ctx     context.Context
	cancel  context.CancelFunc
	failed  chan struct{}
	failing chan error // why the series fails after its last cut
	done    chan struct{}
	pending chan pendingCut
	idle    chan struct{} // signals to drain that nothing is in flight

	cutTimer   *time.Timer // the open cut is due
	flushTimer *time.Timer // the local store is to be written
	flushed    time.Time   // when it was written last; used by Run's goroutine only

	mu     sync.Mutex
	err    error      // why the series failed
	gate   *sync.Cond // signals that the gate has opened, or will not open again
	shut   bool       // the gate is shut until the cut
	ending bool       // the gate is shut permanently

	// What is in flight, and what was handed out since nothing was. What a paused task holds is in flight, but no cut waits
	// for it.
	inflight       int
	busy           time.Time // since when something is in flight
	held           int
	sinceIdle      int
	bytesSinceIdle int

	repartitioned Repartitioned // have no tasks
	tasks         map[int32]*task

	// The open cut: what was handed out, or noted, since the cut before.
	begun   bool
	started time.Time
	records int
	bytes   int
	offsets map[Partition]int64
	lag     int64 // the largest of a claim

	closing     bool      // the cut before is being closed or flushed
	committing  time.Time // when the closer was asked to commit the cut that it is closing; zero between commits
	cuts        int64
	uncommitted int   // how many cuts in a row did not commit their offsets
	commitErr   error // why the last of them did not
}

// pendingCut is a cut to be closed.
type pendingCut struct {
	offsets map[Partition]int64
	rows    Settling // nil: there are none
	made    Made
}

// NewSeries returns a series with an open gate. Run must be called once.
func NewSeries(c Closer, p Policy, member func() Member, layers func() []Layer, made func(Made), log *zap.Logger,
) *Series {
	s := &Series{
		closer: c, policy: p, member: member, layers: layers, made: made, log: log,
		failed: make(chan struct{}), failing: make(chan error, 1), done: make(chan struct{}),
		pending: make(chan pendingCut, 1), idle: make(chan struct{}, 1),
		cutTimer: time.NewTimer(time.Hour), flushTimer: time.NewTimer(time.Hour),
		offsets: map[Partition]int64{}, tasks: map[int32]*task{},
	}
	s.cutTimer.Stop()
	s.flushTimer.Stop()
	s.gate = sync.NewCond(&s.mu)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Context returns a context that ends when the series has drained and made its last cut, or has failed.
func (s *Series) Context() context.Context { return s.ctx }

// Done is closed when Run has returned.
func (s *Series) Done() <-chan struct{} { return s.done }

// Acquire blocks until the gate is open and the partition's task is not paused, and counts one unit of work of size bytes
// as in flight. next is the offset to commit once the work is done; a partition without a topic (timers) commits nothing.
// Acquire returns false if the series has ended: the work must not be done then.
func (s *Series) Acquire(p Partition, next int64, size int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.task(p)
	for (s.shut || t != nil && t.paused) && !s.ending {
		s.gate.Wait()
	}
	if s.ending || !s.beginLocked() {
		return false
	}
	if t != nil {
		t.acquire(p.Topic, next)
	}
	if s.active() == 0 {
		s.busy = time.Now()
	}
	s.inflight++
	s.sinceIdle++
	s.records++
	s.bytesSinceIdle += size
	s.bytes += size
	if p.Topic != "" {
		s.offsets[p] = next
	}
	if s.sinceIdle >= s.policy.MaxRecords || s.bytesSinceIdle >= s.policy.MaxBytes || s.nextCutFull() {
		s.shut = true
	}
	return true
}

// nextCutFull reports whether the gate must stay shut until the last cut is closed; s.mu is held. Until then no cut can
// be made, so that everything handed out stays in memory: in rows that a broker does not acknowledge, or in the open
// layer while a flush to the disk does not finish. Callbacks wait for neither, so the limit of records in flight does
// not bound it.
func (s *Series) nextCutFull() bool {
	return s.closing && (s.records >= s.policy.MaxRecords || s.bytes >= s.policy.MaxBytes)
}

// NoteLag records by how many records a claim lags. The largest lag in a cut counts (Policy.Backlog).
func (s *Series) NoteLag(records int64) {
	if s.policy.Backlog == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lag = max(s.lag, records)
}

// Note records the position of a partition from which nothing was consumed yet, so that the next cut commits it: an input
// without a committed offset is taken for one that the group has never read. Like Acquire it blocks until the gate is
// open.
func (s *Series) Note(p Partition, offset int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.shut && !s.ending { // a blocking closer is not begun while it closes
		s.gate.Wait()
	}
	if s.ending || !s.beginLocked() {
		return
	}
	if _, ok := s.offsets[p]; !ok {
		s.offsets[p] = offset
		if t := s.task(p); t != nil {
			t.noted[p.Topic] = true
		}
	}
}

func (s *Series) beginLocked() bool {
	if s.begun {
		return true
	}
	if err := s.closer.Begin(); err != nil {
		s.failLocked(fmt.Errorf("cut: begin: %w", err))
		return false
	}
	s.begun, s.started = true, time.Now()
	if d := s.policy.Every; d > 0 {
		s.cutTimer.Reset(d)
	} else {
		s.cutTimer.Reset(s.policy.Force)
	}
	return true
}

// Release counts one unit of work as done.
func (s *Series) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inflight--
	if s.active() == 0 {
		s.idleLocked()
	}
}

// idleLocked is called at each moment with nothing in flight except what paused tasks hold.
func (s *Series) idleLocked() {
	s.sinceIdle, s.bytesSinceIdle = 0, 0
	switch {
	case s.ending:
		select {
		case s.idle <- struct{}{}:
		default:
		}
	case s.begun && !s.closing && (s.shut || time.Since(s.started) >= s.policy.Every):
		s.cutLocked()
	case s.shut && !s.closing, s.shut && s.closer.Background() && !s.nextCutFull():
		s.openLocked()
	}
}

func (s *Series) openLocked() {
	s.shut = false
	s.gate.Broadcast()
}

// cutLocked makes the cut: nothing is in flight, and nothing is being closed.
func (s *Series) cutLocked() {
	j := pendingCut{offsets: s.takeOffsets(), rows: s.sealRows()}
	j.made = Made{Records: s.records, Age: time.Since(s.started), Progress: s.progress(j.offsets)}
	s.begun, s.closing, s.records, s.bytes, s.lag = false, true, 0, 0, 0
	if s.closer.Background() {
		s.sealLayers()
		s.openLocked()
	} else {
		s.shut = true
	}
	s.pending <- j // never blocks: there is one pending cut at a time
}

func (s *Series) sealRows() Settling {
	if s.table == nil {
		return nil
	}
	return s.table.Seal()
}

func (s *Series) sealLayers() {
	for _, l := range s.layers() {
		l.Seal()
	}
}

// Fail ends the series without a cut. Only the first error is kept.
func (s *Series) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failLocked(err)
}

func (s *Series) failLocked(err error) {
	if s.err != nil {
		return
	}
	s.err = err
	s.ending = true
	s.gate.Broadcast()
	close(s.failed)
}

// Err returns why the series failed, or nil.
func (s *Series) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Abort must be called once Goka has stopped. It aborts a cut that was begun and not closed.
func (s *Series) Abort() error {
	s.mu.Lock()
	begun := s.begun
	s.begun = false
	s.mu.Unlock()
	if !begun {
		return nil
	}
	return s.closer.Abort()
}

// Uncommitted returns how many consecutive cuts could not commit their offsets, and the error of the last one. Nothing is
// lost, but a restart repeats everything since.
func (s *Series) Uncommitted() (cuts int, last error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.uncommitted, s.commitErr
}

// Wait is what a series waits for.
type Wait struct {
	// Commit says that a cut is being committed; otherwise records are in flight.
	Commit bool
	For    time.Duration
	// Records is how many records and deadlines were handed out and are not done.
	Records int
}

// Waiting returns what the series waits for, which is nothing if For is zero. Brokers that do not answer are a reason to wait,
// and so is a callback that does not return.
func (s *Series) Waiting() Wait {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := Wait{Records: s.active()}
	switch {
	case !s.committing.IsZero():
		w.Commit, w.For = true, time.Since(s.committing)
	case w.Records > 0:
		w.For = time.Since(s.busy)
	}
	return w
}

// Cuts returns the number of cuts that were closed.
func (s *Series) Cuts() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cuts
}
