package processors

import (
	"context"
	"errors"
	"fmt"

	"github.com/IBM/sarama"

	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/instance"
)

// Offsets are offsets by topic and partition.
type Offsets map[string]map[int32]int64

// Of returns the offset of a partition; ok is false if there is none.
func (o Offsets) Of(topic string, partition int32) (offset int64, ok bool) {
	offset, ok = o[topic][partition]
	return offset, ok
}

// Committed returns the committed offsets of a consumer group for topics. The group has handled all records with lower
// offsets: under New, what it wrote because of them is in Kafka. The result has no offset for a partition for which the group
// has committed none, or whose topic was deleted and created again since: New commits the topic's ID too, and an offset after
// the end of the partition belongs to an earlier topic. A group that does not exist has no offsets. Committed returns ErrNotFollowing if Run is not connected.
func (f *Follower) Committed(group string, topics ...string) (Offsets, error) {
	client, _, done, err := f.use(context.Background())
	if err != nil {
		return nil, err
	}
	defer done()
	admin, err := sarama.NewClusterAdminFromClient(client) // closing it would close the client
	if err != nil {
		return nil, fmt.Errorf("processors: offsets of group %s: %w", group, err)
	}
	answer, err := admin.ListConsumerGroupOffsets(group, nil)
	switch {
	case errors.Is(err, sarama.ErrGroupIDNotFound):
		return Offsets{}, nil
	case err != nil:
		return nil, fmt.Errorf("processors: offsets of group %s: %w", group, err)
	case answer.Err != sarama.ErrNoError:
		return nil, fmt.Errorf("processors: offsets of group %s: %w", group, answer.Err)
	}
	committed := Offsets{}
	for _, topic := range topics {
		id, err := (&instance.TopicManager{Client: client}).TopicID(topic)
		if err != nil {
			return nil, fmt.Errorf("processors: ID of topic %s: %w", topic, err)
		}
		committed[topic] = map[int32]int64{}
		for partition, block := range answer.Blocks[topic] {
			if block.Err != sarama.ErrNoError {
				return nil, fmt.Errorf("processors: offset of group %s in %s/%d: %w", group, topic, partition, block.Err)
			}
			listed, _ := cut.ParseListed(block.Metadata)
			if block.Offset < 0 || listed.OfAnother(id) {
				continue
			}
			newest, err := client.GetOffset(topic, partition, sarama.OffsetNewest)
			if err != nil {
				return nil, fmt.Errorf("processors: end of %s/%d: %w", topic, partition, err)
			}
			if block.Offset <= newest {
				committed[topic][partition] = block.Offset
			}
		}
	}
	return committed, nil
}
