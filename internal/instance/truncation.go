package instance

import (
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/cut"
)

// epochsConfirmed is the number of metadata refreshes after which a new leader epoch is used: Sarama's consumer refreshes
// its own metadata at the same interval, and reads under the new epoch by then.
const epochsConfirmed = 2

// newEpochs returns the epochs of the run, from the metadata of its client.
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
	b, end, err := r.beyondEnd(p, false)
	if err == nil && b != nil {
		b, end, err = r.beyondEnd(p, true) // the shared offsets may be older than a commit
	}
	if err != nil || b == nil {
		return -1, err
	}
	log := r.instance.cfg.Logger.With(zap.String("topic", p.Topic), zap.Int32("partition", p.ID),
		zap.Int64("committed", b.Offset), zap.Int64("end", end))
	l, _ := cut.ParseListed(b.Metadata)
	epoch, known := l.Epoch()
	if id := r.inputs[p.Topic].ID; !known || id == "" || l.OfAnother(id) {
		log.Warn("the committed offset is beyond the end of the log: the partition is read from its oldest offset")
		return -1, nil
	}
	at, err := Divergence(r.client, p.Topic, p.ID, epoch)
	if err != nil {
		return -1, fmt.Errorf("instance: %w", err)
	}
	log.Warn("the log was cut off by an unclean leader election: records may be lost; the partition is read from where the "+
		"new leader began", zap.Int32("epoch", epoch), zap.Int64("offset", at))
	return at, nil
}

// beyondEnd returns the committed offset of a partition if it is beyond the end of its log, and that end; else nil.
func (r *run) beyondEnd(p cut.Partition, fresh bool) (b *sarama.OffsetFetchResponseBlock, end int64, err error) {
	resp, err := r.committed.get(r.client, r.instance.group, fresh)
	if err != nil {
		return nil, 0, err
	}
	b = resp.GetBlock(p.Topic, p.ID)
	switch {
	case b == nil:
		return nil, 0, nil
	case b.Err != sarama.ErrNoError:
		return nil, 0, b.Err
	case b.Offset < 0:
		return nil, 0, nil
	}
	if end, err = r.client.GetOffset(p.Topic, p.ID, sarama.OffsetNewest); err != nil || b.Offset <= end {
		return nil, 0, err
	}
	return b, end, nil
}
