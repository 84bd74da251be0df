package cut

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/IBM/sarama"
	"go.uber.org/zap"
)

// errGone says that the generation ended before Goka had recovered its tables.
var errGone = errors.New("cut: the generation ended during recovery")

// generation is one generation of the group, between two rebalances. Sarama calls its Setup, then ConsumeClaim for each
// partition of each topic, then Cleanup.
type generation struct {
	group  *Group
	goka   sarama.ConsumerGroupHandler
	member func() Member
	series *Series
	sess   *session
	leave  context.CancelFunc // ends the series as a revocation does
	stop   context.CancelFunc // ends the goroutines that renew and watch the lease
	work   sync.WaitGroup     // pumps, timer claims, lease

	mu       sync.Mutex
	claims   map[Partition]*claim
	readings map[int32]*reading // by partition

	allBegun   chan struct{} // closed when all claims have begun, or the generation ends instead
	closeBegun func()
}

// Setup implements sarama.ConsumerGroupHandler: Goka recovers its tables in it.
func (g *generation) Setup(s sarama.ConsumerGroupSession) error {
	o := g.group.opts
	g.begin(s)
	partitions := g.partitions()
	if o.Events.Recovering != nil {
		o.Events.Recovering(s.GenerationID(), len(partitions))
	}
	g.makeCuts(s.Context())
	if err := g.keepLease(s.Context()); err != nil {
		return err
	}
	err := g.goka.Setup(g.sess)
	switch {
	case s.Context().Err() != nil:
		return errGone
	case err != nil:
		g.series.Fail(err)
		return err
	}
	if o.Timers != nil {
		g.startTimers(partitions)
	}
	if o.Events.Running != nil {
		o.Events.Running(s.GenerationID())
	}
	return nil
}

// begin makes g the running generation of its group, with a new series.
func (g *generation) begin(s sarama.ConsumerGroupSession) {
	o := g.group.opts
	g.member = func() Member {
		return Member{Group: o.Name, ID: s.MemberID(), InstanceID: o.InstanceID, Generation: s.GenerationID()}
	}
	m := g.member()
	g.group.member.Store(&m)
	g.claims, g.allBegun = map[Partition]*claim{}, make(chan struct{})
	g.closeBegun = sync.OnceFunc(func() { close(g.allBegun) })
	g.series = NewSeries(o.Closer, o.Policy, g.member, o.Layers, o.Events.Made, o.Log)
	g.series.repartitioned = o.Repartitioned
	if o.Table != nil {
		g.series.table = o.Table()
	}
	g.sess = &session{ConsumerGroupSession: s, series: g.series, repartitioned: o.Repartitioned}
	g.group.cur.Store(g)
	if fatal := g.group.fatal.Load(); fatal != nil { // failed between two generations
		g.series.Fail(*fatal)
	}
}

// makeCuts runs the series until ctx ends, leave is called or the series fails.
func (g *generation) makeCuts(ctx context.Context) {
	var revoked context.Context
	revoked, g.leave = context.WithCancel(ctx)
	g.work.Go(func() {
		defer g.leave()
		if err := g.series.Run(revoked); err != nil {
			g.group.Fail(err)
		}
	})
}

// keepLease renews the lease, if there is one, and keeps it until stop is called.
func (g *generation) keepLease(ctx context.Context) error {
	o := g.group.opts
	lease, stop := context.WithCancel(context.Background())
	g.stop = stop
	if o.Lease == nil {
		return nil
	}
	if err := o.Lease.Confirm(ctx, o.Client, g.member()); err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	g.work.Go(func() { o.Lease.Keep(lease, o.Client, o.Heartbeat, g.member, g.group.Fail, o.Log) })
	g.work.Go(func() { o.Lease.Watch(lease, g.group.Fail) })
	return nil
}

// startTimers begins to hand out the deadlines of each partition.
func (g *generation) startTimers(partitions []int32) {
	readings, now := make(map[int32]*reading, len(partitions)), g.group.opts.Timers.Clock.Now()
	for _, p := range partitions {
		readings[p] = &reading{since: now}
	}
	g.mu.Lock()
	g.readings = readings
	g.mu.Unlock()
	for _, p := range partitions {
		c := &timerClaim{
			timers: g.group.opts.Timers, partition: p, out: make(chan *sarama.ConsumerMessage), progress: g.progress, log: g.group.opts.Log,
		}
		g.work.Go(func() { c.pump(g.series) })
		g.work.Go(func() { g.consume(c) })
	}
}

// partitions returns the numbers of the partitions that Goka was assigned; they are the same for every topic.
func (g *generation) partitions() []int32 {
	for _, partitions := range g.sess.Claims() {
		return partitions // the topics are copartitioned
	}
	return nil
}

// ConsumeClaim implements sarama.ConsumerGroupHandler.
func (g *generation) ConsumeClaim(_ sarama.ConsumerGroupSession, inner sarama.ConsumerGroupClaim) error {
	c := newClaim(inner)
	p := Partition{inner.Topic(), inner.Partition()}
	g.group.opts.Epochs.Begin(p)
	if left, err := g.noteStart(p, c); left || err != nil {
		g.closeBegun()
		return err
	}
	g.began(p, c)
	g.work.Go(func() {
		c.pump(g.series)
		// Sarama also closes a claim whose offset is out of range and continues the session: the partition would not be
		// read any more. Joining again restarts the claim.
		g.leave()
	})
	if outgoing := g.group.opts.Repartitioned[p.Topic]; outgoing != nil {
		g.repartition(c, outgoing)
		return nil
	}
	g.consume(c)
	return nil
}

// noteStart has the next cut commit where a claim begins, if no offset is committed or its metadata is out of date. left
// reports that the member leaves the generation instead, because the log of the partition was truncated.
func (g *generation) noteStart(p Partition, c *claim) (left bool, err error) {
	o := g.group.opts
	at := c.InitialOffset()
	if at >= 0 {
		if o.Relist {
			g.series.Note(p, at)
		}
		return false, nil
	}
	offset, err := o.Client.GetOffset(p.Topic, p.ID, at) // at is a symbol: the oldest or the newest offset
	if err != nil {
		err = fmt.Errorf("cut: %s/%d: first offset: %w", p.Topic, p.ID, err)
		g.series.Fail(err)
		return false, err
	}
	if moved, err := g.restart(p, offset); moved || err != nil {
		return moved, err
	}
	c.startAt(offset)
	g.series.Note(p, offset)
	return false, nil
}

// consume runs Goka on a claim until the series' context ends.
func (g *generation) consume(c sarama.ConsumerGroupClaim) {
	err := g.goka.ConsumeClaim(g.sess, c)
	if g.series.Context().Err() == nil { // Goka left by itself: a record failed
		g.series.Fail(fmt.Errorf("cut: goka stopped consuming %s/%d: %w", c.Topic(), c.Partition(), orStopped(err)))
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
func (g *generation) Cleanup(s sarama.ConsumerGroupSession) error {
	<-g.series.Done() // nothing is committed any more
	if l := g.group.opts.Lease; l != nil && l.Lost() {
		// The next generation would renew the lease, and the records that still wait in the producer would be sent.
		g.group.Fail(ErrLease)
	}
	g.stop()
	g.work.Wait()
	err := g.goka.Cleanup(g.sess) // Goka's last promises are resolved when it returns
	if aerr := g.series.Abort(); aerr != nil {
		g.group.opts.Log.Warn("the open transaction could not be aborted", zap.Error(aerr))
	}
	g.group.cur.CompareAndSwap(g, nil)
	if f := g.group.opts.Events.Ended; f != nil {
		f(s.GenerationID(), g.series.Cuts())
	}
	return err
}
