package cut

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"
)

// Group is a sarama.ConsumerGroup that Goka consumes with.
type Group struct {
	sarama.ConsumerGroup
	opts   Options
	cur    atomic.Pointer[generation] // of the running generation
	member atomic.Pointer[Member]     // of the last generation; nil where its ID is not known
	fatal  atomic.Pointer[error]
	end    atomic.Pointer[context.CancelFunc] // of Consume
	again  atomic.Pointer[context.CancelFunc] // of Sarama's session

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

const (
	// rejoinPause keeps a member that cannot join from retrying in a tight loop.
	rejoinPause = 100 * time.Millisecond
	// warnAfter is how many failures in a row are ordinary in a rebalance or after a crash.
	warnAfter = 30
)

// Consume implements sarama.ConsumerGroup: it joins, serves a generation and joins again at once; Goka would sleep for five
// seconds. It blocks until ctx ends, Stop is called or the group fails. It returns nil once everything is drained, or the
// error for which the instance must stop. It must be called once.
func (g *Group) Consume(ctx context.Context, topics []string, h sarama.ConsumerGroupHandler) error {
	if t := g.opts.Timers; t != nil {
		topics = slices.DeleteFunc(slices.Clone(topics), func(topic string) bool { return topic == t.Topic })
	}
	topics = append(slices.Clone(topics), g.opts.Repartitioned.Topics()...)
	defer close(g.left)
	serving, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(g.stopping, end)()
	g.end.Store(&end)
	if fatal := g.fatal.Load(); fatal != nil {
		return *fatal
	}
	failed := 0 // how often in a row the member could not begin
	for {
		g.opts.Joins.begin()
		session, again := context.WithCancel(serving)
		g.again.Store(&again)
		err := g.ConsumerGroup.Consume(session, topics, &generation{group: g, goka: h})
		again()
		if fatal := g.fatal.Load(); fatal != nil {
			return *fatal
		}
		switch {
		case ctx.Err() != nil, g.stopping.Err() != nil:
			return nil
		case err == nil:
			failed = 0
		case errors.Is(err, sarama.ErrFencedInstancedId):
			return fmt.Errorf("%w: group %s, instance %s", ErrFenced, g.opts.Name, g.opts.InstanceID)
		case errors.Is(err, errGone), errors.Is(err, sarama.ErrUnstableOffsetCommit), transientJoin(err):
			// A rebalance interrupted recovery, or a predecessor's transaction holds this member's offsets.
			failed++
			level := zap.InfoLevel
			if failed%warnAfter == 0 {
				level = zap.WarnLevel
			}
			g.opts.Log.Log(level, "joining again", zap.Int("failed in a row", failed), zap.Error(err))
			if g.opts.Unstable != nil && errors.Is(err, sarama.ErrUnstableOffsetCommit) {
				g.opts.Unstable()
			}
			pause(serving, rejoinPause)
		default:
			return fmt.Errorf("cut: group %s: %w", g.opts.Name, err)
		}
	}
}

// Rejoin makes the member drain and join again under its ID, with a subscription that the coordinator does not know yet, so that
// the group rebalances.
func (g *Group) Rejoin() {
	g.opts.Joins.renew()
	if again := g.again.Load(); again != nil {
		(*again)()
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

// Current returns the running generation's series, or nil between generations.
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
