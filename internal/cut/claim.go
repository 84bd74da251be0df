package cut

import (
	"context"
	"maps"
	"sync/atomic"

	"github.com/IBM/sarama"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

// session is the session that Goka gets for a generation: it has only the claims that Goka reads, a mark releases a record
// from the Series, a commit does nothing, and the context ends after the drain.
type session struct {
	sarama.ConsumerGroupSession
	series        *Series
	repartitioned Repartitioned
}

// Claims implements sarama.ConsumerGroupSession.
func (s *session) Claims() map[string][]int32 {
	claims := maps.Clone(s.ConsumerGroupSession.Claims())
	maps.DeleteFunc(claims, func(topic string, _ []int32) bool { return s.repartitioned.has(topic) })
	return claims
}

func (s *session) Context() context.Context { return s.series.Context() }

// Commit does nothing: offsets are committed at a cut only.
func (s *session) Commit() {}

// MarkOffset is called when a record's outputs are acknowledged; the cut waits for its table row.
func (s *session) MarkOffset(string, int32, int64, string) { s.series.Release() }

// MarkMessage implements sarama.ConsumerGroupSession. Goka calls MarkOffset instead.
func (s *session) MarkMessage(*sarama.ConsumerMessage, string) { s.series.Release() }

// claim hands Goka the records of a partition that have passed the gate.
type claim struct {
	sarama.ConsumerGroupClaim
	out   chan *sarama.ConsumerMessage
	next  atomic.Int64 // first offset not handed out
	begin int64        // first offset that is read; it does not change after the claim has begun
	found atomic.Int64 // end of the partition when its first record was read
}

func newClaim(c sarama.ConsumerGroupClaim) *claim {
	w := &claim{ConsumerGroupClaim: c, out: make(chan *sarama.ConsumerMessage)}
	w.startAt(max(c.InitialOffset(), 0))
	return w
}

func (c *claim) startAt(offset int64) {
	c.begin = offset
	c.next.Store(offset)
}

// Messages implements sarama.ConsumerGroupClaim. The channel is not closed: Goka stops when the session's context ends,
// which outlives the inner claim for the time of the drain.
func (c *claim) Messages() <-chan *sarama.ConsumerMessage { return c.out }

// lag returns the number of records of the partition that have not been handed out.
func (c *claim) lag() int64 { return max(c.HighWaterMarkOffset()-c.next.Load(), 0) }

// pump feeds the claim until the inner claim or the series ends.
func (c *claim) pump(s *Series) {
	stopped := s.Context().Done()
	for {
		select {
		case m, ok := <-c.ConsumerGroupClaim.Messages():
			if !ok {
				return
			}
			end := c.HighWaterMarkOffset()
			s.NoteLag(end - m.Offset)
			c.found.CompareAndSwap(0, end)
			if !s.Acquire(Partition{m.Topic, m.Partition}, m.Offset+1, len(m.Key)+len(m.Value)) {
				return
			}
			if m.Key == nil { // Goka makes it an empty string, and the dead-letter record must not
				m.Headers = append(m.Headers, &sarama.RecordHeader{Key: []byte(runtimeapi.HeaderNullKey)})
			}
			select {
			case c.out <- m:
				c.next.Store(m.Offset + 1)
			case <-stopped:
				return
			}
		case <-stopped:
			return
		}
	}
}
