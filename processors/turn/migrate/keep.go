package migrate

import (
	"errors"
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"
)

// keepFor is how long the brokers keep the offsets of a finished migration.
const keepFor = 100 * 365 * 24 * time.Hour

// keep commits the progress of a finished migration again, so that it does not expire. Brokers forget the offsets of a group
// without members after offsets.retention.minutes, seven days by default, and the import would then fail on the next start
// because the table has rows. Only the versions 2 to 4 of the request can name another time, and transactions cannot.
func (m *migration) keep(p progress, member *sarama.ConsumerGroupMetadata) {
	if err := m.keepOffsets(p, member); err != nil {
		m.logger.Warn("the brokers may forget that the histories have moved: start without the import from now on",
			zap.String("group", member.GroupID), zap.Error(err))
	}
}

func (m *migration) keepOffsets(p progress, member *sarama.ConsumerGroupMetadata) error {
	offsets, err := p.offsets(m.source())
	if err != nil {
		return err
	}
	r := &sarama.OffsetCommitRequest{
		Version: 4, RetentionTime: keepFor.Milliseconds(),
		ConsumerGroup: member.GroupID, ConsumerGroupGeneration: member.GenerationID, ConsumerID: member.MemberID,
	}
	for topic, all := range offsets {
		for _, o := range all {
			r.AddBlock(topic, o.Partition, o.Offset, 0, *o.Metadata)
		}
	}
	coordinator, err := m.client.Coordinator(member.GroupID)
	if err != nil {
		return err
	}
	answer, err := coordinator.CommitOffset(r)
	if err != nil {
		return err
	}
	var errs []error
	for _, partitions := range answer.Errors {
		for _, code := range partitions {
			if code != sarama.ErrNoError {
				errs = append(errs, code)
			}
		}
	}
	return errors.Join(errs...)
}
