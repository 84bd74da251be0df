package processortest

import (
	"context"

	"github.com/IBM/sarama"
)

// This file stands between the tester's consumer group and Goka. The tester hands over whatever lies in its queues, in
// no order between topics, each record once, and waits for its mark. We take the records at once and mark them; the
// driver then hands them to Goka one by one, and as often as it likes.

type consumerGroup struct {
	sarama.ConsumerGroup
	runner *runner
}

func (g *consumerGroup) Consume(ctx context.Context, topics []string, h sarama.ConsumerGroupHandler) error {
	return g.ConsumerGroup.Consume(ctx, topics, &groupHandler{ConsumerGroupHandler: h, runner: g.runner})
}

type groupHandler struct {
	sarama.ConsumerGroupHandler
	runner *runner
}

func (h *groupHandler) Setup(s sarama.ConsumerGroupSession) error {
	return h.ConsumerGroupHandler.Setup(&session{s, h.runner})
}

// Cleanup is called when the tester has closed its claims.
func (h *groupHandler) Cleanup(s sarama.ConsumerGroupSession) error {
	h.runner.pumps.Wait()
	return h.ConsumerGroupHandler.Cleanup(&session{s, h.runner})
}

func (h *groupHandler) ConsumeClaim(s sarama.ConsumerGroupSession, c sarama.ConsumerGroupClaim) error {
	r := h.runner
	r.pumps.Go(func() {
		for m := range c.Messages() {
			r.driver.arrived(r, m.Topic, m.Offset)
			s.MarkMessage(m, "")
		}
	})
	r.reading(c.Topic())
	return h.ConsumerGroupHandler.ConsumeClaim(&session{s, r}, &claim{c, r.claims[c.Topic()]})
}

// session is what Goka sees of the tester's, which panics where it is asked for more than marks.
type session struct {
	sarama.ConsumerGroupSession
	runner *runner
}

func (s *session) MemberID() string { return "processortest" }
func (s *session) Commit()          {}

// MarkOffset is called when a callback has returned and its emits are acknowledged; offset is the next one to read.
func (s *session) MarkOffset(topic string, _ int32, offset int64, _ string) {
	s.runner.marked(topic, offset-1)
}

func (s *session) MarkMessage(m *sarama.ConsumerMessage, _ string) {
	s.runner.marked(m.Topic, m.Offset)
}

// claim is what Goka reads a topic from. Its channel is never closed: Goka stops by the session's context.
type claim struct {
	sarama.ConsumerGroupClaim
	messages <-chan *sarama.ConsumerMessage
}

func (c *claim) Messages() <-chan *sarama.ConsumerMessage { return c.messages }

// consumer reads joined and looked-up tables. A graph is started when it follows all of them.
type consumer struct {
	sarama.Consumer
	runner *runner
}

func (c *consumer) ConsumePartition(topic string, partition int32, offset int64) (sarama.PartitionConsumer, error) {
	inner, err := c.Consumer.ConsumePartition(topic, partition, offset)
	if err == nil {
		c.runner.reading(topic)
	}
	return inner, err
}
