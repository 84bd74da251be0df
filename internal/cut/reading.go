package cut

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

// Log looks at the records of an input's partition. Its functions block for requests.
type Log struct {
	// High returns the offset after the last record: the high watermark.
	High func(p Partition) (int64, error)
	// Data returns the offset after the last committed record in [from, to) that a consumer returns, or from if there is none:
	// only markers of transactions, aborted records and offsets that compaction removed. settled is false while a transaction
	// that wrote a record before to is open.
	Data func(ctx context.Context, p Partition, from, to int64) (end int64, settled bool, err error)
}

// reading follows how far a member has read the inputs of one partition. At some time it asks the brokers where the inputs
// end, and at each deadline it compares these offsets with the records whose callbacks have run: once all are reached, every
// record that was written before that time has been handled.
type reading struct {
	mu      sync.Mutex
	since   time.Time
	through time.Time
	at      time.Time            // when the brokers were asked for ends
	ends    map[string]*inputEnd // by topic; nil: none are open
	asking  bool                 // a request has not returned
	retry   time.Time            // on the system's clock; no request before
	reached map[string]*inputEnd // by topic: the ends that were reached last; nil: none
}

// inputEnd is the end of an input: its high watermark, and the offset after its last committed record before that, once it is
// known.
type inputEnd struct {
	high, offset int64
	known        bool
}

// The waits of deadlines for the brokers. What is not known after askLimit counts as not read. After an error, or
// while a transaction is open, the brokers are not asked again for askAgain.
const (
	askLimit = 250 * time.Millisecond
	askAgain = 100 * time.Millisecond
)

// ask asks for the ends of a partition's inputs that are not known. positions are the offsets that have been read.
type ask struct {
	log       Log
	now       func() time.Time
	partition int32
	positions map[string]int64
	reached   map[string]*inputEnd // reading.reached
}

// advance returns a time before which all records of the inputs were written that have been handled: at least due if
// possible. It blocks for askLimit at most, or until ctx ends. The zero time means that nothing is known.
func (r *reading) advance(ctx context.Context, due time.Time, a ask) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setBack(a.now())
	for range 2 { // the ends of an earlier deadline may be reached now, and be too early for this one
		r.reach(a.positions)
		if !r.through.Before(due) || r.asking || r.complete() || time.Now().Before(r.retry) {
			break
		}
		r.asking = true
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			r.request(ctx, a)
		}()
		r.mu.Unlock()
		limit := time.NewTimer(askLimit)
		select {
		case <-answered:
		case <-limit.C:
		case <-ctx.Done():
		}
		limit.Stop()
		r.mu.Lock()
	}
	r.reach(a.positions)
	return r.through
}

// begun returns when the member began to read.
func (r *reading) begun() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.since
}

// setBack forgets what is in the future because the clock was set back; r.mu is held.
func (r *reading) setBack(now time.Time) {
	if r.since.After(now) {
		r.since = now
	}
	if r.through.After(now) || r.at.After(now) {
		r.through, r.at, r.ends = time.Time{}, time.Time{}, nil
	}
}

// reach notes that all ends are reached, if they are; r.mu is held.
func (r *reading) reach(positions map[string]int64) {
	if !r.complete() {
		return
	}
	for topic, e := range r.ends {
		if positions[topic] < e.offset {
			return
		}
	}
	r.through, r.ends, r.reached = r.at, nil, r.ends
}

// complete reports whether the ends are open and known; r.mu is held.
func (r *reading) complete() bool {
	for _, e := range r.ends {
		if !e.known {
			return false
		}
	}
	return r.ends != nil
}

// request asks the brokers for what is not known of the ends.
func (r *reading) request(ctx context.Context, a ask) {
	r.mu.Lock()
	at, ends := r.at, make(map[string]*inputEnd, len(a.positions))
	for topic, e := range r.ends {
		known := *e
		ends[topic] = &known
	}
	a.reached = r.reached
	r.mu.Unlock()
	if len(ends) == 0 {
		at = a.now() // before the brokers are asked
	}
	ok := a.find(ctx, ends)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asking = false
	if ok {
		r.at, r.ends = at, ends
	}
	if !ok || !r.complete() {
		r.retry = time.Now().Add(askAgain)
	}
}

// find completes ends. It returns false if a request failed.
func (a ask) find(ctx context.Context, ends map[string]*inputEnd) bool {
	var work sync.WaitGroup
	results := make(chan error, len(a.positions))
	for topic, position := range a.positions {
		e, p := ends[topic], Partition{topic, a.partition}
		asked := e != nil
		if !asked {
			e = &inputEnd{}
			ends[topic] = e
		}
		work.Go(func() { results <- a.findOne(ctx, p, position, e, asked) })
	}
	work.Wait()
	close(results)
	for err := range results {
		if err != nil {
			return false
		}
	}
	return true
}

func (a ask) findOne(ctx context.Context, p Partition, position int64, e *inputEnd, asked bool) (err error) {
	if e.known {
		return nil
	}
	if !asked {
		if e.high, err = a.log.High(p); err != nil {
			return err
		}
		e.offset = e.high
		if was := a.reached[p.Topic]; was != nil && was.high == e.high { // nothing was written since
			e.offset = was.offset
		}
	}
	if e.known = e.offset <= position; e.known {
		return nil
	}
	last, settled, err := a.log.Data(ctx, p, position, e.high)
	if err == nil && settled {
		e.offset, e.known = last, true
	}
	return err
}

// Progress returns how far the inputs of a partition have been read, through due if possible. Records whose callbacks have begun
// count as read. Repartitioned inputs do not count. It blocks for askLimit at most.
func (g *Group) Progress(partition int32, due time.Time) runtimeapi.Progress {
	h := g.cur.Load()
	if h == nil || g.opts.Timers == nil {
		return runtimeapi.Progress{}
	}
	return h.progress(partition, due)
}

func (g *generation) progress(partition int32, due time.Time) runtimeapi.Progress {
	g.mu.Lock()
	r, claims := g.readings[partition], maps.Clone(g.claims)
	g.mu.Unlock()
	if r == nil {
		return runtimeapi.Progress{}
	}
	timers := g.group.opts.Timers
	r.mu.Lock()
	r.setBack(timers.Clock.Now())
	p := runtimeapi.Progress{Since: r.since}
	r.mu.Unlock()
	positions := map[string]int64{}
	for topic := range g.sess.Claims() {
		c := claims[Partition{topic, partition}]
		if c == nil { // the claim has not begun
			return p
		}
		positions[topic] = g.series.position(Partition{topic, partition}, c)
	}
	p.Through = r.advance(g.series.Context(), due, ask{
		log: timers.Log, now: timers.Clock.Now, partition: partition, positions: positions,
	})
	return p
}

// position returns the offset of the first record of a claim whose callback has not begun.
func (s *Series) position(p Partition, c *claim) int64 {
	next := c.next.Load() // first: it is where the claim began as long as the task has no record of the topic
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.task(p); t != nil {
		if at, ok := t.at[p.Topic]; ok {
			return at
		}
	}
	return next
}
