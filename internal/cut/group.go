package cut

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"
)

// errGone says that the generation ended before Goka had recovered its tables.
var errGone = errors.New("cut: the generation ended during recovery")

// Options configures a Group.
type Options struct {
	Name     string // of the group
	Instance string // group.instance.id, empty for a dynamic member
	Closer   Closer
	Policy   Policy
	// Layers returns the open local stores of the group table's partitions.
	Layers func() []Layer
	// Table returns the writer of the group table's rows; it is called in each generation. nil: no rows are written.
	Table func() Table
	// Timers is nil for a group without deadlines.
	Timers *Timers
	// Client sends commits, heartbeats and offset requests, which do not wait for a long poll on it. The Group does not own
	// it.
	Client sarama.Client
	// Joins is the balance strategy of the group; nil for a dynamic member, which has no identity to lose.
	Joins *Joins
	// Lease may be nil. Heartbeat is how often it is renewed.
	Lease     *Lease
	Heartbeat time.Duration
	// Unstable, if not nil, is called when a predecessor's transaction holds offsets that this member needs, before it
	// requests them again. It may block for requests.
	Unstable func()
	// Leaving, if not nil, closes the member's producer before the member leaves the group: records that the producer still
	// retried would follow the rows of the next owner.
	Leaving func()
	// Epochs, if not nil, is notified of each claim that begins.
	Epochs *Epochs
	// Truncated, if not nil, is called for a claim that Sarama starts at its oldest offset. It returns the offset at which
	// to start instead, or an offset that is not above the oldest to keep it.
	Truncated func(p Partition) (int64, error)
	// Listing is the metadata of an offset that is committed because of Truncated; it may be nil.
	Listing *Listing
	// Relist commits the first position of each claim even if it is committed already, because the committed metadata is
	// out of date.
	Relist bool
	// Events may be zero.
	Events Events
	Log    *zap.Logger
}

// Events notify the unit of the states of a group. They are called from several goroutines and must not block.
type Events struct {
	// Recovering: partitions were assigned, tables are being read.
	Recovering func(generation int32, partitions int)
	// Running: tables are recovered, records flow.
	Running func(generation int32)
	// Made: a cut was made and its offsets are committed.
	Made func(Made)
	// Ended: the generation is over.
	Ended func(generation int32, cuts int64)
}

// Group is a sarama.ConsumerGroup that Goka consumes with.
type Group struct {
	sarama.ConsumerGroup
	opts   Options
	cur    atomic.Pointer[handler] // of the running generation
	member atomic.Pointer[Member]  // of the last generation; nil where its ID is not known
	fatal  atomic.Pointer[error]
	end    atomic.Pointer[context.CancelFunc] // of Sarama's session

	stopping context.Context // ended by Stop
	stop     context.CancelFunc
	left     chan struct{} // closed when Consume has returned
}

// NewGroup wraps g. Close closes g.
func NewGroup(g sarama.ConsumerGroup, o Options) *Group {
	w := &Group{ConsumerGroup: g, opts: o, left: make(chan struct{})}
	w.stopping, w.stop = context.WithCancel(context.Background())
	if o.Joins != nil {
		o.Joins.again = func() { w.member.Store(nil) }
	}
	return w
}

// rejoinPause keeps a member that cannot join from retrying in a tight loop.
const rejoinPause = 100 * time.Millisecond

// Consume implements sarama.ConsumerGroup: it joins, serves a generation and joins again at once; Goka would sleep for five
// seconds. It blocks until ctx ends, Stop is called or the group fails. It returns nil once everything is drained, or the
// error for which the unit must stop. It must be called once.
func (g *Group) Consume(ctx context.Context, topics []string, h sarama.ConsumerGroupHandler) error {
	if t := g.opts.Timers; t != nil {
		topics = slices.DeleteFunc(slices.Clone(topics), func(topic string) bool { return topic == t.Topic })
	}
	defer close(g.left)
	serving, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(g.stopping, end)()
	g.end.Store(&end)
	if fatal := g.fatal.Load(); fatal != nil {
		return *fatal
	}
	for {
		g.opts.Joins.begin()
		err := g.ConsumerGroup.Consume(serving, topics, &handler{group: g, goka: h})
		if fatal := g.fatal.Load(); fatal != nil {
			return *fatal
		}
		switch {
		case ctx.Err() != nil, g.stopping.Err() != nil:
			return nil
		case err == nil:
			continue
		case errors.Is(err, sarama.ErrFencedInstancedId):
			return fmt.Errorf("%w: group %s, instance %s", ErrFenced, g.opts.Name, g.opts.Instance)
		case errors.Is(err, errGone), errors.Is(err, sarama.ErrUnstableOffsetCommit), transientJoin(err):
			// A rebalance interrupted recovery, or a predecessor's transaction holds this member's offsets.
			g.opts.Log.Info("joining again", zap.Error(err))
			if g.opts.Unstable != nil && errors.Is(err, sarama.ErrUnstableOffsetCommit) {
				g.opts.Unstable()
			}
			pause(serving, rejoinPause)
		default:
			return fmt.Errorf("cut: group %s: %w", g.opts.Name, err)
		}
	}
}

// Stop makes Consume drain and return, and blocks until it has returned or done is closed. Goka's own context must not end
// before that: its end closes the tables in which callbacks look up.
func (g *Group) Stop(done <-chan struct{}) {
	g.stop()
	select {
	case <-g.left:
	case <-done:
	}
}

// Close implements sarama.ConsumerGroup: a dynamic member leaves the group, and its partitions move at once.
func (g *Group) Close() error {
	if g.opts.Leaving != nil {
		g.opts.Leaving()
	}
	return g.ConsumerGroup.Close()
}

// Left is closed when Consume has returned: no callback runs any more.
func (g *Group) Left() <-chan struct{} { return g.left }

func transientJoin(err error) bool {
	return errors.Is(err, sarama.ErrRebalanceInProgress) || errors.Is(err, sarama.ErrUnknownMemberId) ||
		errors.Is(err, sarama.ErrIllegalGeneration) || errors.Is(err, sarama.ErrMemberIdRequired)
}

// Fail stops the group without a cut: Consume returns err. Only the first error is kept.
func (g *Group) Fail(err error) {
	if !g.fatal.CompareAndSwap(nil, &err) {
		return
	}
	if h := g.cur.Load(); h != nil {
		h.series.Fail(err)
	}
	if end := g.end.Load(); end != nil { // a member without partitions has no claim that would end
		(*end)()
	}
}

// Err returns why the group is ending without a cut, or nil.
func (g *Group) Err() error {
	if fatal := g.fatal.Load(); fatal != nil {
		return *fatal
	}
	if s := g.Current(); s != nil {
		return s.Err()
	}
	return nil
}

// Current returns the running generation's series, or nil between generations. Visits pass through it.
func (g *Group) Current() *Series {
	if h := g.cur.Load(); h != nil {
		return h.series
	}
	return nil
}

// Member returns the identity of this member in the last generation that it joined. It is zero before the first one, and
// while the coordinator may have assigned a new ID that is not known yet.
func (g *Group) Member() Member {
	if m := g.member.Load(); m != nil {
		return *m
	}
	return Member{}
}

// Lag returns how many records of each claimed partition have not been handed out, or nil between generations.
func (g *Group) Lag() map[Partition]int64 {
	h := g.cur.Load()
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	lag := make(map[Partition]int64, len(h.claims))
	for p, c := range h.claims {
		lag[p] = c.lag()
	}
	return lag
}

// handler serves one generation.
type handler struct {
	group  *Group
	goka   sarama.ConsumerGroupHandler
	series *Series
	sess   *session
	leave  context.CancelFunc // ends the series as a revocation does
	stop   context.CancelFunc // ends the goroutines that renew and watch the lease
	work   sync.WaitGroup     // pumps, timer claims, lease

	mu     sync.Mutex
	claims map[Partition]*claim
}

// Setup implements sarama.ConsumerGroupHandler: Goka recovers its tables in it.
func (h *handler) Setup(s sarama.ConsumerGroupSession) error {
	o := h.group.opts
	member := func() Member {
		return Member{Group: o.Name, ID: s.MemberID(), Instance: o.Instance, Generation: s.GenerationID()}
	}
	m := member()
	h.group.member.Store(&m)
	h.claims = map[Partition]*claim{}
	h.series = NewSeries(o.Closer, o.Policy, member, o.Layers, o.Events.Made, o.Log)
	if o.Table != nil {
		h.series.table = o.Table()
	}
	h.sess = &session{ConsumerGroupSession: s, series: h.series}
	h.group.cur.Store(h)
	if fatal := h.group.fatal.Load(); fatal != nil { // failed between two generations
		h.series.Fail(*fatal)
	}
	partitions := h.partitions(s)
	if o.Events.Recovering != nil {
		o.Events.Recovering(s.GenerationID(), len(partitions))
	}

	var revoked context.Context
	revoked, h.leave = context.WithCancel(s.Context())
	h.work.Go(func() {
		defer h.leave()
		if err := h.series.Run(revoked); err != nil {
			h.group.Fail(err)
		}
	})
	lease, stop := context.WithCancel(context.Background())
	h.stop = stop
	if o.Lease != nil {
		if err := o.Lease.Confirm(s.Context(), o.Client, m); err != nil {
			return fmt.Errorf("%w: %w", errGone, err)
		}
		h.work.Go(func() { o.Lease.Keep(lease, o.Client, o.Heartbeat, member, h.group.Fail, o.Log) })
		h.work.Go(func() { o.Lease.Watch(lease, h.group.Fail) })
	}

	err := h.goka.Setup(h.sess)
	switch {
	case s.Context().Err() != nil:
		return errGone
	case err != nil:
		h.series.Fail(err)
		return err
	}
	if o.Timers != nil {
		for _, p := range partitions {
			c := newTimerClaim(o.Timers, p)
			h.work.Go(func() { c.pump(h.series) })
			h.work.Go(func() { h.consume(c) })
		}
	}
	if o.Events.Running != nil {
		o.Events.Running(s.GenerationID())
	}
	return nil
}

func (h *handler) partitions(s sarama.ConsumerGroupSession) []int32 {
	for _, partitions := range s.Claims() {
		return partitions // the topics are copartitioned
	}
	return nil
}

// ConsumeClaim implements sarama.ConsumerGroupHandler.
func (h *handler) ConsumeClaim(_ sarama.ConsumerGroupSession, inner sarama.ConsumerGroupClaim) error {
	c := newClaim(inner)
	p := Partition{inner.Topic(), inner.Partition()}
	h.group.opts.Epochs.Begin(p)
	switch at := inner.InitialOffset(); {
	case at < 0:
		offset, err := h.group.opts.Client.GetOffset(p.Topic, p.ID, at)
		if err != nil {
			err = fmt.Errorf("cut: %s/%d: first offset: %w", p.Topic, p.ID, err)
			h.series.Fail(err)
			return err
		}
		if moved, err := h.restart(p, offset); moved || err != nil {
			return err
		}
		c.next.Store(offset)
		h.series.Note(p, offset)
	case h.group.opts.Relist:
		h.series.Note(p, at)
	}
	h.mu.Lock()
	h.claims[p] = c
	h.mu.Unlock()
	h.work.Go(func() {
		c.pump(h.series)
		// Sarama also closes a claim whose offset is out of range and continues the session: the partition would not be read
		// any more. Joining again restarts the claim.
		h.leave()
	})
	h.consume(c)
	return nil
}

// consume runs Goka on a claim until the series' context ends.
func (h *handler) consume(c sarama.ConsumerGroupClaim) {
	err := h.goka.ConsumeClaim(h.sess, c)
	if h.series.Context().Err() == nil { // Goka left by itself: a record failed
		h.series.Fail(fmt.Errorf("cut: goka stopped consuming %s/%d: %w", c.Topic(), c.Partition(), orStopped(err)))
	}
}

var errStopped = errors.New("its partition processor has stopped")

func orStopped(err error) error {
	if err == nil {
		return errStopped
	}
	return err
}

// Cleanup implements sarama.ConsumerGroupHandler: every claim has ended.
func (h *handler) Cleanup(s sarama.ConsumerGroupSession) error {
	<-h.series.Done() // nothing is committed any more
	if l := h.group.opts.Lease; l != nil && l.Lost() {
		// The next generation would renew the lease, and the records that still wait in the producer would be sent.
		h.group.Fail(ErrLease)
	}
	h.stop()
	h.work.Wait()
	err := h.goka.Cleanup(h.sess) // Goka's last promises are resolved when it returns
	if aerr := h.series.Abort(); aerr != nil {
		h.group.opts.Log.Warn("the open transaction could not be aborted", zap.Error(aerr))
	}
	h.group.cur.CompareAndSwap(h, nil)
	if f := h.group.opts.Events.Ended; f != nil {
		f(s.GenerationID(), h.series.Cuts())
	}
	return err
}
