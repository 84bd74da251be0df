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

// errGone says that the generation ended while Goka was recovering, or before.
var errGone = errors.New("cut: the generation ended during recovery")

// Options is what a Group needs beside Sarama's.
type Options struct {
	Name     string // of the group
	Instance string // group.instance.id, empty for a dynamic member
	Closer   Closer
	Policy   Policy
	// Layers are the local stores of the group table's partitions that are open.
	Layers func() []Layer
	// Table writes the rows of the group table; asked for in each generation. nil: nobody does.
	Table func() Table
	// Timers is nil for a group without deadlines.
	Timers *Timers
	// Client is ours: commits, heartbeats and offsets do not wait behind a long poll on it. Not owned.
	Client sarama.Client
	// Joins is the strategy that the group is balanced by; nil for a dynamic member, which has no identity to lose.
	Joins *Joins
	// Lease may be nil. Heartbeat is how often it is renewed.
	Lease     *Lease
	Heartbeat time.Duration
	// Unstable, if any, is called when a predecessor's transaction holds offsets that this member needs, before they are
	// asked for again. It may block for as long as requests take.
	Unstable func()
	// Leaving, if any, ends the member's producer before it leaves the group: what a producer still retries then would
	// land behind the rows of the next owner.
	Leaving func()
	// Events may be zero.
	Events Events
	Log    *zap.Logger
}

// Events tell the unit how a group fares. They are called from several goroutines and must not block.
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

// NewGroup wraps g. Close closes it.
func NewGroup(g sarama.ConsumerGroup, o Options) *Group {
	w := &Group{ConsumerGroup: g, opts: o, left: make(chan struct{})}
	w.stopping, w.stop = context.WithCancel(context.Background())
	if o.Joins != nil {
		o.Joins.again = func() { w.member.Store(nil) }
	}
	return w
}

// rejoinPause keeps a member that cannot join from asking in a tight loop.
const rejoinPause = 100 * time.Millisecond

// Consume implements sarama.ConsumerGroup: it joins, serves a generation and joins again at once, where Goka would sleep
// for five seconds. It returns nil when ctx has ended, or after Stop, and everything is drained; else why the unit must
// stop. It is called once.
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
			// A rebalance came during recovery, or a predecessor's transaction holds our offsets.
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

// Stop has Consume drain and return, and returns when it has. Goka's own context must not end before: it closes the
// tables that callbacks look up in.
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

// Fail stops the group without a cut: Consume returns err.
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

// Err is why the group is ending without a cut, or nil.
func (g *Group) Err() error {
	if fatal := g.fatal.Load(); fatal != nil {
		return *fatal
	}
	if s := g.Current(); s != nil {
		return s.Err()
	}
	return nil
}

// Current is the running generation's series, nil between generations. Visits pass through it.
func (g *Group) Current() *Series {
	if h := g.cur.Load(); h != nil {
		return h.series
	}
	return nil
}

// Member is who this was in the last generation it joined. It is zero before the first, and while it may have become
// another member whose ID is not known yet.
func (g *Group) Member() Member {
	if m := g.member.Load(); m != nil {
		return *m
	}
	return Member{}
}

// Lag is how many records of each claimed partition have not been handed out.
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
	stop   context.CancelFunc // ends what keeps the lease
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
	if at := inner.InitialOffset(); at < 0 {
		offset, err := h.group.opts.Client.GetOffset(p.Topic, p.ID, at)
		if err != nil {
			err = fmt.Errorf("cut: %s/%d: first offset: %w", p.Topic, p.ID, err)
			h.series.Fail(err)
			return err
		}
		c.next.Store(offset)
		h.series.Note(p, offset)
	}
	h.mu.Lock()
	h.claims[p] = c
	h.mu.Unlock()
	h.work.Go(func() {
		c.pump(h.series)
		// Sarama also closes a claim while the session goes on, where its offset is out of range: nobody would read the
		// partition then. Joining again starts it anew.
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
		// The next generation would renew the lease, and let pass what waits in the producer since before.
		h.group.Fail(ErrLease)
	}
	h.stop()
	h.work.Wait()
	err := h.goka.Cleanup(h.sess) // Goka's last promises are in when it returns
	if aerr := h.series.Abort(); aerr != nil {
		h.group.opts.Log.Warn("abort", zap.Error(aerr))
	}
	h.group.cur.CompareAndSwap(h, nil)
	if f := h.group.opts.Events.Ended; f != nil {
		f(s.GenerationID(), h.series.Cuts())
	}
	return err
}
