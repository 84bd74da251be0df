package cut

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
)

// Made tells of a cut that was made.
type Made struct {
	Records int           // handed out since the cut before it, timers and visits included
	Age     time.Duration // from its first record to the moment with nothing in flight
	Took    time.Duration // to commit its offsets
}

// Series is the series of cuts of one member in one generation of its group. Every source of effects passes it: records,
// timers and visits Acquire before they are handed to Goka and are Released when Goka has marked them.
type Series struct {
	closer Closer
	policy Policy
	member func() Member
	layers func() []Layer
	table  Table // nil: nobody writes rows
	made   func(Made)
	log    *zap.Logger

	// Context is what Goka sees of the session: it ends after the drain.
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
	shut     bool       // no one passes until the cut
	sealed   bool       // no one passes any more
	begun    bool       // something was handed out, or noted, since the last cut
	closing  bool       // the closer or a flush is at work
	inflight int
	handed   int // since nothing was in flight last
	bytes    int
	started  time.Time
	offsets  map[Partition]int64
	work     int // handed out since the last cut
	weight   int // and its bytes
	behind   int64
	cuts     int64
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

// Context ends when the series has drained and made its last cut, or has failed.
func (s *Series) Context() context.Context { return s.ctx }

// Done is closed when Run has returned.
func (s *Series) Done() <-chan struct{} { return s.done }

// Acquire waits for the gate and counts one unit of work in. next is the offset to commit once the work is done; a
// partition without a topic (timers, visits) commits nothing. It reports false when the series has ended: the work must
// not be done.
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

// laden reports whether the gate must stay shut until the last cut is closed; s.mu is held. Until then no cut can be
// made, so that everything handed out stays in memory: in rows that a broker does not acknowledge, or in the open layer
// behind a flush that a disk does not end. Callbacks wait for neither, so the records in flight do not bound it.
func (s *Series) laden() bool {
	return s.closing && (s.work >= s.policy.MaxRecords || s.weight >= s.policy.MaxBytes)
}

// Behind tells how many records a claim is behind; the most in a cut counts.
func (s *Series) Behind(records int64) {
	if s.policy.Backlog == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind = max(s.behind, records)
}

// Note records the position of a partition nothing was consumed of yet, so that the next cut commits it too: a group's
// input without a committed offset is one that the group never had. Like Acquire it waits for the gate.
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

// Release counts one unit of work out.
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

// Fail ends the series without a cut. The first error stays.
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

// Err is why the series failed, or nil.
func (s *Series) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Abort is called once Goka has stopped: it gives up what was begun and never closed.
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

// Cuts counts the cuts that were closed.
func (s *Series) Cuts() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cuts
}
