package instance

import (
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/IBM/sarama"
)

// ErrShorter says that a local store has read beyond the end of its table's topic: the topic was deleted and recreated, or
// has lost records. Delete the store's directory; it is rebuilt from the topic.
var ErrShorter = errors.New("recovery: local store is ahead of its topic")

// ErrRecreated says that a local store belongs to an earlier topic of the same name. Delete the store's directory; it is
// rebuilt from the topic.
var ErrRecreated = errors.New("recovery: topic was deleted and recreated since the local store was written")

// end returns the offset at which Goka stops reading a partition whose data records end before stable. If the local store
// has already read further, because compaction has removed the last records or only transaction markers follow, it is the
// offset after the store's: Goka would report a smaller one as a lost table.
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

// TopicID returns the broker's id of a topic. A topic of the same name that is created later has another one. It is empty
// if the topic does not exist or the brokers have no topic ids (before Kafka 2.8).
func (m *TopicManager) TopicID(topic string) (string, error) {
	found, err := m.Describe(topic)
	return found[topic].ID, err
}

// Described is a broker's description of a topic.
type Described struct {
	// ID is the topic's id: a topic of the same name that is created later has another one. Empty before Kafka 2.8.
	ID         string
	Partitions int
}

// Describe returns a broker's descriptions of topics. Topics that it does not have, or reports an error for, are missing
// from the result. A connection that was idle during an outage of the broker is found broken only when it is used, so a request
// that is not answered is sent once more on a new connection.
func (m *TopicManager) Describe(topics ...string) (map[string]Described, error) {
	resp, err := m.metadata(topics)
	if err != nil {
		resp, err = m.metadata(topics)
	}
	if err != nil {
		return nil, fmt.Errorf("instance: describe topics %v: %w", topics, err)
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

// metadata asks the controller for metadata. If it gets none, it closes the connection, so that the next request opens another.
func (m *TopicManager) metadata(topics []string) (*sarama.MetadataResponse, error) {
	broker, err := m.Client.Controller()
	if err != nil {
		return nil, err
	}
	resp, err := broker.GetMetadata(sarama.NewMetadataRequest(m.Client.Config().Version, topics))
	if err != nil {
		_ = broker.Close()
		_, _ = m.Client.RefreshController()
	}
	return resp, err
}
