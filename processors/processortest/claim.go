package processortest

import (
	"context"

	"github.com/IBM/sarama"
)

// This file wraps the consumer group of Goka's tester. The tester delivers each record once, in no order between topics,
// and waits until it is marked. The wrappers mark the records immediately and queue them; the driver then delivers them to
// Goka one at a time, in order, and again for a redelivery.

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
			r.driver.received(r, m.Topic, m.Offset)
			s.MarkMessage(m, "")
		}
	})
	r.reading(c.Topic())
	return h.ConsumerGroupHandler.ConsumeClaim(&session{s, r}, &claim{c, r.claims[c.Topic()]})
}

// session wraps the tester's session, which panics in every method except those that mark records.
type session struct {
	sarama.ConsumerGroupSession
	runner *runner
}

func (s *session) MemberID() string { return "processortest" }
func (s *session) Commit()          {}

// MarkOffset is called when a callback has returned and its emits are acknowledged. offset is that of the next record.
func (s *session) MarkOffset(topic string, _ int32, offset int64, _ string) {
	s.runner.marked(topic, offset-1)
}

func (s *session) MarkMessage(m *sarama.ConsumerMessage, _ string) {
	s.runner.marked(m.Topic, m.Offset)
}

// claim is the claim from which Goka reads a topic. Its channel is never closed: Goka stops when the session's context ends.
type claim struct {
	sarama.ConsumerGroupClaim
	messages <-chan *sarama.ConsumerMessage
}

func (c *claim) Messages() <-chan *sarama.ConsumerMessage { return c.messages }

// consumer reads joined and looked-up tables. A graph has started when all of them are being read.
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
