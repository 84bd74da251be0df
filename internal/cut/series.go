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
	Records int           // handed out since the previous cut, timers and visits included
	Age     time.Duration // from its first record to the moment with nothing in flight
	Took    time.Duration // to commit its offsets
}

// Series makes the cuts of one member in one generation of its group. Every source of effects passes it: records, timers
// and visits call Acquire before they are handed to Goka, and Release once Goka has marked them. It is safe for concurrent
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
	ctx    context.Context
	cancel context.CancelFunc
	failed chan struct{}
	done   chan struct{}
	jobs   chan job
	quiet  chan struct{}
	timer  *time.Timer

	late    *time.Timer // of a flush
	flushed time.Time   // when the local store was written last; Run's

	mu       sync.Mutex
	turn     *sync.Cond // gate opened, or sealed
	err      error      // why the series failed
	shut     bool       // the gate is shut until the cut
	sealed   bool       // the gate is shut permanently
	begun    bool       // something was handed out, or noted, since the last cut
	closing  bool       // a cut is being closed or flushed
	inflight int
	handed   int // handed out since the last moment with nothing in flight
	bytes    int
	started  time.Time
	offsets  map[Partition]int64
	work     int // handed out since the last cut
	weight   int // and its bytes
	behind   int64
	cuts     int64
	missed   int   // cuts in a row whose offsets were not committed
	missing  error // why the last of them was not
}

// job is a cut to be closed.
type job struct {
	offsets map[Partition]int64
	rows    Settling // nil: there are none
	made    Made
}

// NewSeries returns a series with an open gate. Run must be called once.
func NewSeries(c Closer, p Policy, member func() Member, layers func() []Layer, made func(Made), log *zap.Logger,
) *Series {
	s := &Series{
		closer: c, policy: p, member: member, layers: layers, made: made, log: log,
		failed: make(chan struct{}), done: make(chan struct{}),
		jobs: make(chan job, 1), quiet: make(chan struct{}, 1),
		timer: time.NewTimer(time.Hour), late: time.NewTimer(time.Hour),
		offsets: map[Partition]int64{},
	}
	s.timer.Stop()
	s.late.Stop()
	s.turn = sync.NewCond(&s.mu)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Context returns a context that ends when the series has drained and made its last cut, or has failed.
func (s *Series) Context() context.Context { return s.ctx }

// Done is closed when Run has returned.
func (s *Series) Done() <-chan struct{} { return s.done }

// Acquire blocks until the gate is open and counts one unit of work of size bytes as in flight. next is the offset to
// commit once the work is done; a partition without a topic (timers, visits) commits nothing. Acquire returns false if the
// series has ended: the work must not be done then.
func (s *Series) Acquire(p Partition, next int64, size int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.shut && !s.sealed {
		s.turn.Wait()
	}
	if s.sealed || !s.beginLocked() {
		return false
	}
	s.inflight++
	s.handed++
	s.work++
	s.bytes += size
	s.weight += size
	if p.Topic != "" {
		s.offsets[p] = next
	}
	if s.handed >= s.policy.MaxRecords || s.bytes >= s.policy.MaxBytes || s.laden() {
		s.shut = true
	}
	return true
}

// laden reports whether the gate must stay shut until the last cut is closed; s.mu is held. Until then no cut can be made,
// so that everything handed out stays in memory: in rows that a broker does not acknowledge, or in the open layer while a
// flush to the disk does not finish. Callbacks wait for neither, so the limit of records in flight does not bound it.
func (s *Series) laden() bool {
	return s.closing && (s.work >= s.policy.MaxRecords || s.weight >= s.policy.MaxBytes)
}

// Behind records by how many records a claim lags. The largest lag in a cut counts (Policy.Backlog).
func (s *Series) Behind(records int64) {
	if s.policy.Backlog == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind = max(s.behind, records)
}

// Note records the position of a partition from which nothing was consumed yet, so that the next cut commits it: an input
// without a committed offset is taken for one that the group has never read. Like Acquire it blocks until the gate is
// open.
func (s *Series) Note(p Partition, offset int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.shut && !s.sealed { // a blocking closer is not begun while it closes
		s.turn.Wait()
	}
	if s.sealed || !s.beginLocked() {
		return
	}
	if _, ok := s.offsets[p]; !ok {
		s.offsets[p] = offset
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
		s.timer.Reset(d)
	} else {
		s.timer.Reset(s.policy.Force)
	}
	return true
}

// Release counts one unit of work as done.
func (s *Series) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inflight--
	if s.inflight == 0 {
		s.quietLocked()
	}
}

// quietLocked is called at each moment with nothing in flight.
func (s *Series) quietLocked() {
	s.handed, s.bytes = 0, 0
	switch {
	case s.sealed:
		select {
		case s.quiet <- struct{}{}:
		default:
		}
	case s.begun && !s.closing && (s.shut || time.Since(s.started) >= s.policy.Every):
		s.cutLocked()
	case s.shut && !s.closing, s.shut && s.closer.Background() && !s.laden():
		s.openLocked()
	}
}

func (s *Series) openLocked() {
	s.shut = false
	s.turn.Broadcast()
}

// cutLocked makes the cut: nothing is in flight, and nothing is being closed.
func (s *Series) cutLocked() {
	j := job{offsets: s.offsets, rows: s.sealRows(), made: Made{Records: s.work, Age: time.Since(s.started)}}
	s.offsets = make(map[Partition]int64, len(j.offsets))
	s.begun, s.closing, s.work, s.weight, s.behind = false, true, 0, 0, 0
	if s.closer.Background() {
		s.sealLayers()
		s.openLocked()
	} else {
		s.shut = true
	}
	s.jobs <- j // never blocks: there is one job at a time
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
	s.sealed = true
	s.turn.Broadcast()
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
	return s.missed, s.missing
}

// Cuts returns the number of cuts that were closed.
func (s *Series) Cuts() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cuts
}
