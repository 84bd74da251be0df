package cut

import (
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/internal/store"
)

// Timers is the virtual topic that delivers due deadlines to Goka. It is never on the broker. The offset of a deadline is its
// time in milliseconds since the epoch: with its key it identifies the deadline whenever it fires. Its timestamp is the time
// through which the inputs of the partition have been read.
type Timers struct {
	Topic string
	Tick  time.Duration
	Clock clock.Clock
	// Next returns the earliest deadline of a partition's index; ok is false if there is none.
	Next func(partition int32) (ms int64, ok bool)
	// Due removes and returns at most max deadlines of a partition's index that are due at a time.
	Due func(partition int32, nowMS int64, max int) []store.DueEntry
	// Log tells where the inputs end.
	Log Log
}

// UnreadLimit is how long a deadline waits for records that were written before it and may be unread, from when it is due, or
// from when the partition began to be read if that is later. Without a limit, a partition whose inputs are never read to their
// ends would have no deadlines: a broker may not answer, and a transaction may stay open.
const UnreadLimit = 30 * time.Second

// sweepBatch bounds how many deadlines a sweep removes from the index at a time. Deadlines that were removed but not handed
// out when the session ends return only when the next owner rebuilds the index.
const sweepBatch = 64

// timerClaim is the claim of a partition of the virtual topic.
type timerClaim struct {
	timers    *Timers
	partition int32
	out       chan *sarama.ConsumerMessage
	// progress tells how far the inputs have been read: through a time if possible. It blocks for askLimit at most. It is not
	// called in a callback: a record whose callback has begun counts as read, because the deadline comes after it.
	progress func(partition int32, through time.Time) runtimeapi.Progress
	log      *zap.Logger
	late     bool // deadlines no longer wait for unread records
}

func (c *timerClaim) Topic() string                            { return c.timers.Topic }
func (c *timerClaim) Partition() int32                         { return c.partition }
func (c *timerClaim) InitialOffset() int64                     { return 0 }
func (c *timerClaim) HighWaterMarkOffset() int64               { return 0 }
func (c *timerClaim) Messages() <-chan *sarama.ConsumerMessage { return c.out }

// pump sweeps at every tick, and once before the first, until the series ends. While a deadline waits for records that may be
// unread, it sweeps more often: the records are read without a tick.
func (c *timerClaim) pump(s *Series) {
	ticker := c.timers.Clock.NewTicker(c.timers.Tick)
	defer ticker.Stop()
	again := time.NewTimer(askAgain)
	defer again.Stop()
	for {
		waits, ok := c.sweep(s)
		if !ok {
			return
		}
		again.Stop()
		if waits {
			again.Reset(askAgain)
		}
		select {
		case <-ticker.C():
		case <-again.C:
		case <-s.Context().Done():
			return
		}
	}
}

// sweep hands out the deadlines that may fire. It reports whether one that is due waits for unread records; ok is false if the
// series has ended.
func (c *timerClaim) sweep(s *Series) (waits, ok bool) {
	for {
		next, any := c.timers.Next(c.partition)
		now := c.timers.Clock.Now()
		if !any || next > now.UnixMilli() {
			return false, true
		}
		through := c.through(now)
		if next > through.UnixMilli() {
			return true, true
		}
		due := c.timers.Due(c.partition, through.UnixMilli(), sweepBatch)
		for _, d := range due {
			if !s.Acquire(Partition{ID: c.partition}, 0, 0) {
				return false, false
			}
			value, _ := store.DueCodec{}.Encode(store.Due{At: time.UnixMilli(d.Ms)}) // fails only for other types
			m := &sarama.ConsumerMessage{
				Topic: c.timers.Topic, Partition: c.partition, Offset: d.Ms, Timestamp: through,
				Key: []byte(d.Key), Value: value,
			}
			select {
			case c.out <- m:
			case <-s.Context().Done():
				return false, false
			}
		}
		if len(due) < sweepBatch { // rows that were written meanwhile, and are due again, wait for the next tick
			next, any = c.timers.Next(c.partition)
			return any && next > through.UnixMilli() && next <= now.UnixMilli(), true
		}
	}
}

// through returns the time whose deadlines may fire: that through which the inputs have been read, or UnreadLimit ago.
func (c *timerClaim) through(now time.Time) time.Time {
	p := c.progress(c.partition, now)
	last := now.Add(-UnreadLimit)
	late := last.After(p.Through) && !last.Before(p.Since)
	if late && !c.late {
		c.log.Warn("the inputs of a partition are not read to their ends: its deadlines come late, and do not wait for records any longer",
			zap.Int32("partition", c.partition), zap.Duration("late", UnreadLimit))
	}
	c.late = late
	if late {
		return last
	}
	return p.Through
}
