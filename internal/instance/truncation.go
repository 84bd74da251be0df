package instance

import (
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/recovery"
)

// epochsConfirmed is the number of metadata refreshes after which a new leader epoch is used: Sarama's consumer refreshes
// its own metadata at the same interval, and reads under the new epoch by then.
const epochsConfirmed = 2

// newEpochs returns the epochs of the attempt, from the metadata of its client.
func (r *run) newEpochs() *cut.Epochs {
	seen := func(p cut.Partition) (int32, bool) {
		_, epoch, err := r.client.LeaderAndEpoch(p.Topic, p.ID)
		return epoch, err == nil && epoch >= 0
	}
	return cut.NewEpochs(seen, epochsConfirmed*r.client.Config().Metadata.RefreshFrequency, time.Now)
}

// truncated returns the offset at which to continue a partition whose committed offset is beyond the end of its log: an
// unclean leader election has truncated the log, and records that were written since have not been read. Sarama would
// start at the oldest offset and repeat everything that the topic retains. truncated returns -1 if that is right: no
// offset is committed, the records after it have expired, or the topic was recreated.
func (r *run) truncated(p cut.Partition) (int64, error) {
	admin, err := sarama.NewClusterAdminFromClient(r.client)
	if err != nil {
		return -1, err
	}
	resp, err := admin.ListConsumerGroupOffsets(r.unit.group, map[string][]int32{p.Topic: {p.ID}})
	if err != nil {
		return -1, err
	}
	b := resp.GetBlock(p.Topic, p.ID)
	switch {
	case b == nil:
		return -1, nil
	case b.Err != sarama.ErrNoError:
		return -1, b.Err
	case b.Offset < 0:
		return -1, nil
	}
	end, err := r.client.GetOffset(p.Topic, p.ID, sarama.OffsetNewest)
	if err != nil {
		return -1, err
	}
	if b.Offset <= end {
		return -1, nil
	}
	log := r.unit.cfg.Logger.With(zap.String("topic", p.Topic), zap.Int32("partition", p.ID),
		zap.Int64("committed", b.Offset), zap.Int64("end", end))
	l, _ := cut.ParseListed(b.Metadata)
	epoch, known := l.Epoch()
	if id := r.inputs[p.Topic].ID; !known || id == "" || l.OfAnother(id) {
		log.Warn("the committed offset is beyond the end of the log: the partition is read from its oldest offset")
		return -1, nil
	}
	at, err := recovery.Divergence(r.client, p.Topic, p.ID, epoch)
	if err != nil {
		return -1, fmt.Errorf("unit: %w", err)
	}
	log.Warn("the log was cut off by an unclean leader election: records may be lost; the partition is read from where the "+
		"new leader began", zap.Int32("epoch", epoch), zap.Int64("offset", at))
	return at, nil
}
