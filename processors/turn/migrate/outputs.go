package migrate

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// ReturnOutputs moves a consumer group of FlightDeck's chat-api forward to where the deliveries of this library have stopped
// in message-output, so that chat-api does not deliver what they have delivered, and delivers what they have not read. It
// never moves the group back, and does nothing if no deliveries have run, or while they run. It may be repeated. opts are
// those of Export.
//
// It returns ErrActive if chat-api's group has members.
func ReturnOutputs(ctx context.Context, brokers []string, catalog topics.Catalog, group string, opts ...processors.Option) error {
	m, err := newMigration(brokers, catalog, opts)
	if err != nil {
		return err
	}
	return m.connect(ctx, opts, func(context.Context) error { return m.returnOutputs(group) })
}

func (m *migration) returnOutputs(group string) error {
	topic, deliveries := m.catalog.MessageOutput.Name(), string(m.catalog.DeliveryGroup())
	delivered, err := m.committedIn(deliveries, topic)
	if err != nil {
		return err
	}
	if len(delivered) == 0 {
		return nil
	}
	switch err := m.withoutMembers(deliveries); {
	case errors.Is(err, ErrActive):
		m.logger.Warn("deliveries still run: the offsets of chat-api are not moved", zap.String("group", group), zap.Error(err))
		return nil
	case err != nil:
		return err
	}
	sent, err := m.committedIn(group, topic)
	if err != nil {
		return err
	}
	moved := offsets{}
	for partition, block := range delivered {
		if own := sent[partition]; block.Offset >= 0 && (own == nil || own.Offset < block.Offset) {
			moved.set(topic, partition, block.Offset)
		}
	}
	if err := m.commitOffsets(group, moved); err != nil {
		return err
	}
	m.logger.Info("chat-api continues where deliveries have stopped", zap.String("group", group),
		zap.String("topic", topic), zap.Int("partitions", len(moved[topic])))
	return nil
}
