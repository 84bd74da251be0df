package migrate

import (
	"context"
	"fmt"

	"github.com/IBM/sarama"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/kafka"
)

// alone runs do in one process at a time: the one that has partition 0 of the source in the import's group. The others wait.
// The context of do ends when this process loses the partition; do then runs again once it, or another, has it.
func (m *migration) alone(ctx context.Context, do func(context.Context, *sarama.ConsumerGroupMetadata) error) error {
	conf := kafka.Copy(m.conf)
	conf.Consumer.Group.InstanceId = "" // that of the group of the turn
	conf.Consumer.Offsets.Initial = sarama.OffsetNewest
	// The session reads no record and no offset of its own. With read committed it could not begin before the transaction of a
	// process that was killed times out; do ends that transaction.
	conf.Consumer.IsolationLevel = sarama.ReadUncommitted
	conf.Consumer.Return.Errors = true
	conf.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyRange()}
	group := m.catalog.HistoryImportGroup()
	member, err := sarama.NewConsumerGroup(m.brokers, group, conf)
	if err != nil {
		return fmt.Errorf("migrate: join group %s: %w", group, err)
	}
	failures := make(chan struct{})
	go func() {
		defer close(failures)
		for err := range member.Errors() {
			m.logger.Debug("the group of the import has failed", zap.String("group", group), zap.Error(err))
		}
	}()
	defer func() {
		if err := member.Close(); err != nil {
			m.logger.Warn("the process cannot leave the group of the import", zap.String("group", group), zap.Error(err))
		}
		<-failures
	}()
	inner, finish := context.WithCancel(ctx)
	defer finish()
	turn := &turnstile{group: group, logger: m.logger, do: do, finish: finish}
	for inner.Err() == nil {
		if err := member.Consume(inner, []string{m.source()}, turn); err != nil && inner.Err() == nil {
			return fmt.Errorf("migrate: join group %s: %w", group, err)
		}
	}
	if turn.ended {
		return turn.err
	}
	return ctx.Err()
}

// turnstile is the handler of the group. The partition 0 that decides who imports is in one session at a time, so its fields
// need no lock.
type turnstile struct {
	group  string
	logger *zap.Logger
	do     func(context.Context, *sarama.ConsumerGroupMetadata) error
	finish func()
	ended  bool
	err    error
}

func (*turnstile) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*turnstile) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (t *turnstile) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	if claim.Partition() != 0 {
		<-s.Context().Done()
		return nil
	}
	err := t.do(s.Context(), &sarama.ConsumerGroupMetadata{
		GroupID: t.group, GenerationID: s.GenerationID(), MemberID: s.MemberID(),
	})
	if err != nil && s.Context().Err() != nil {
		t.logger.Info("the group of the import has a new member: the import begins again in one of them",
			zap.String("group", t.group))
		return nil
	}
	t.ended, t.err = true, err
	t.finish()
	return nil
}
