package cut

import (
	"time"

	"github.com/IBM/sarama"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/timer"
)

// Timers is the virtual topic through which Goka is handed the deadlines that have come. It is never on the broker.
type Timers struct {
	Topic string
	Tick  time.Duration
	Clock clock.Clock
	// Due takes what is due at a time off the index of a partition, at most max entries.
	Due func(partition int32, nowMS int64, max int) []timer.Entry
}

// sweepBatch bounds what a sweep takes off the index before it is handed on: what is taken and not handed out when the
// session ends is found again only by the next owner's rebuild.
const sweepBatch = 64

// timerClaim is the claim of a partition of the virtual topic.
type timerClaim struct {
	timers    *Timers
	partition int32
	out       chan *sarama.ConsumerMessage
	fired     int64
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
			if !s.Acquire(Partition{}, 0, 0) {
				return false
			}
			value, _ := timer.Codec{}.Encode(timer.Due{At: time.UnixMilli(d.Ms)}) // fails for other types only
			m := &sarama.ConsumerMessage{
				Topic: c.timers.Topic, Partition: c.partition, Offset: c.fired, Timestamp: now,
				Key: []byte(d.Key), Value: value,
			}
			c.fired++
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
