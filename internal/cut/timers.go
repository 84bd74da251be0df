package cut

import (
	"time"

	"github.com/IBM/sarama"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/store"
)

// Timers is the virtual topic that delivers due deadlines to Goka. It is never on the broker. The offset of a deadline is its
// time in milliseconds since the epoch: with its key it identifies the deadline whenever it fires.
type Timers struct {
	Topic string
	Tick  time.Duration
	Clock clock.Clock
	// Due removes and returns at most max deadlines of a partition's index that are due at a time.
	Due func(partition int32, nowMS int64, max int) []store.DueEntry
	// Log is what Group.Progress asks.
	Log Log
}

// sweepBatch bounds how many deadlines a sweep removes from the index at a time. Deadlines that were removed but not handed
// out when the session ends return only when the next owner rebuilds the index.
const sweepBatch = 64

// timerClaim is the claim of a partition of the virtual topic.
type timerClaim struct {
	timers    *Timers
	partition int32
	out       chan *sarama.ConsumerMessage
}

func newTimerClaim(t *Timers, partition int32) *timerClaim {
	return &timerClaim{timers: t, partition: partition, out: make(chan *sarama.ConsumerMessage)}
}

func (c *timerClaim) Topic() string                            { return c.timers.Topic }
func (c *timerClaim) Partition() int32                         { return c.partition }
func (c *timerClaim) InitialOffset() int64                     { return 0 }
func (c *timerClaim) HighWaterMarkOffset() int64               { return 0 }
func (c *timerClaim) Messages() <-chan *sarama.ConsumerMessage { return c.out }

// pump sweeps at every tick, and once before the first, until the series ends.
func (c *timerClaim) pump(s *Series) {
	ticker := c.timers.Clock.NewTicker(c.timers.Tick)
	defer ticker.Stop()
	for c.sweep(s) {
		select {
		case <-ticker.C():
		case <-s.Context().Done():
			return
		}
	}
}

func (c *timerClaim) sweep(s *Series) bool {
	for {
		now := c.timers.Clock.Now()
		due := c.timers.Due(c.partition, now.UnixMilli(), sweepBatch)
		for _, d := range due {
			if !s.Acquire(Partition{ID: c.partition}, 0, 0) {
				return false
			}
			value, _ := store.DueCodec{}.Encode(store.Due{At: time.UnixMilli(d.Ms)}) // fails only for other types
			m := &sarama.ConsumerMessage{
				Topic: c.timers.Topic, Partition: c.partition, Offset: d.Ms, Timestamp: now,
				Key: []byte(d.Key), Value: value,
			}
			select {
			case c.out <- m:
			case <-s.Context().Done():
				return false
			}
		}
		if len(due) < sweepBatch {
			return true
		}
	}
}
