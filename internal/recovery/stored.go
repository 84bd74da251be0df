package recovery

import (
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/IBM/sarama"
)

// ErrShorter says that a local store has seen more of a table's topic than there is: the topic was deleted and made
// anew, or has lost records. The store's directory is to be deleted; it is rebuilt from the topic.
var ErrShorter = errors.New("recovery: local store is ahead of its topic")

// ErrRecreated says that a local store belongs to another topic of the same name. The store's directory is to be
// deleted; it is rebuilt from the topic.
var ErrRecreated = errors.New("recovery: topic was deleted and made anew since the local store was written")

// end is where Goka stops reading a partition whose local store has read up to stored, -1 for nothing. A log whose data
// behind stored was compacted away, or that holds only transaction markers, ends where the store does: Goka would take
// it for a lost table.
func (m *TopicManager) end(topic string, partition int32, stable int64) (int64, error) {
	stored := int64(-1)
	if m.Stored != nil {
		stored = m.Stored(topic, partition)
	}
	if stored < stable {
		return stable, nil
	}
	last, err := lastStable(m.Client, topic, partition)
	if err != nil {
		return 0, fmt.Errorf("recovery: %s/%d: last stable offset: %w", topic, partition, err)
	}
	if stored >= last {
		return 0, fmt.Errorf("%w: %s/%d ends at %d, the store has read %d", ErrShorter, topic, partition, last, stored)
	}
	return stored + 1, nil
}

// TopicID is the broker's id of a topic, which a topic of the same name made later does not have; empty where the
// brokers have none (before Kafka 2.8).
func (m *TopicManager) TopicID(topic string) (string, error) {
	found, err := m.Describe(topic)
	return found[topic].ID, err
}

// Described is what a broker says of a topic.
type Described struct {
	// ID is the topic's: a topic of the same name that is created later has another one. Empty before Kafka 2.8.
	ID         string
	Partitions int
}

// Describe asks a broker for topics. Those that it does not have are missing in the answer.
func (m *TopicManager) Describe(topics ...string) (map[string]Described, error) {
	broker, err := m.Client.Controller()
	if err != nil {
		return nil, fmt.Errorf("recovery: describe topics %v: %w", topics, err)
	}
	resp, err := broker.GetMetadata(sarama.NewMetadataRequest(m.Client.Config().Version, topics))
	if err != nil {
		return nil, fmt.Errorf("recovery: describe topics %v: %w", topics, err)
	}
	found := make(map[string]Described, len(topics))
	for _, t := range resp.Topics {
		if t.Err != sarama.ErrNoError {
			continue
		}
		d := Described{Partitions: len(t.Partitions)}
		if t.Uuid != (sarama.Uuid{}) {
			d.ID = hex.EncodeToString(t.Uuid[:])
		}
		found[t.Name] = d
	}
	return found, nil
}
