package instance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
)

// ErrPartitions says that a topic has another number of partitions than its group needs.
var ErrPartitions = errors.New("recovery: wrong number of partitions")

// TopicManager is a goka.TopicManager over a client that it does not own. It knows the virtual timer topic, returns the
// stable end of a table as its newest offset, and creates the group's own topics with a configurable replication.
type TopicManager struct {
	Client sarama.Client
	// Virtual is a topic that is not on the broker; it is reported with the partitions of the topic Like.
	Virtual, Like string
	// Replication is the replication factor of the topics that it creates; -1 is the broker's default.
	Replication int16
	// Limit bounds the wait for an open transaction at the end of a table.
	Limit time.Duration
	// Fence, if not nil, is called while a transaction is open at the end of a table.
	Fence func(topic string, partition int32)
	// Stored, if not nil, returns the offset up to which the local store of a partition has read, or -1 for nothing.
	Stored func(topic string, partition int32) int64
	// Ended, if not nil, is called with the offset at which Goka will stop reading a partition, or with the error for which
	// it cannot begin.
	Ended func(topic string, partition int32, end int64, err error)
	// Context, if not nil, returns the context that bounds a wait for a table, such as that of the running generation.
	Context func(topic string) context.Context
}

var _ goka.TopicManager = (*TopicManager)(nil)

// EnsureTableExists implements goka.TopicManager.
func (m *TopicManager) EnsureTableExists(topic string, partitions int) error {
	return m.EnsureTopicExists(topic, partitions, int(m.Replication), map[string]string{"cleanup.policy": "compact"})
}

// EnsureStreamExists implements goka.TopicManager.
func (m *TopicManager) EnsureStreamExists(topic string, partitions int) error {
	return m.EnsureTopicExists(topic, partitions, int(m.Replication), nil)
}

// EnsureTopicExists implements goka.TopicManager. A topic that exists is left as it is; it must have the number of
// partitions.
func (m *TopicManager) EnsureTopicExists(topic string, partitions, replication int, config map[string]string) error {
	existing, err := m.partitions(topic)
	if err != nil {
		return err
	}
	if len(existing) == 0 {
		if err := m.create(topic, partitions, replication, config); err != nil {
			return err
		}
		if existing, err = m.partitions(topic); err != nil {
			return err
		}
	}
	if len(existing) != partitions {
		return fmt.Errorf("%w: topic %s has %d, its group's inputs have %d", ErrPartitions, topic, len(existing),
			partitions)
	}
	return nil
}

func (m *TopicManager) create(topic string, partitions, replication int, config map[string]string) error {
	admin, err := sarama.NewClusterAdminFromClient(m.Client)
	if err != nil {
		return fmt.Errorf("recovery: create %s: %w", topic, err)
	}
	entries := make(map[string]*string, len(config))
	for _, name := range slices.Sorted(maps.Keys(config)) {
		value := config[name]
		entries[name] = &value
	}
	err = admin.CreateTopic(topic, &sarama.TopicDetail{
		NumPartitions: int32(partitions), ReplicationFactor: int16(replication), ConfigEntries: entries,
	}, false)
	if err != nil && !errors.Is(err, sarama.ErrTopicAlreadyExists) {
		return fmt.Errorf("recovery: create %s: %w", topic, err)
	}
	return m.await(topic)
}

// await waits until the metadata shows a created topic with a leader for every partition.
func (m *TopicManager) await(topic string) error {
	var err error
	for range 100 {
		if err = m.Client.RefreshMetadata(topic); err == nil {
			var all, writable []int32
			all, _ = m.Client.Partitions(topic)
			writable, err = m.Client.WritablePartitions(topic)
			if err == nil && len(all) > 0 && len(all) == len(writable) {
				return nil
			}
		}
		<-time.After(50 * time.Millisecond)
	}
	return fmt.Errorf("recovery: topic %s was created but is not in the metadata yet: %w", topic, err)
}

// Partitions implements goka.TopicManager.
func (m *TopicManager) Partitions(topic string) ([]int32, error) {
	if m.Virtual != "" && topic == m.Virtual {
		topic = m.Like
	}
	partitions, err := m.partitions(topic)
	if err == nil && len(partitions) == 0 {
		err = fmt.Errorf("recovery: topic %s does not exist", topic)
	}
	return partitions, err
}

// partitions requests the metadata of all topics: a request for one topic would create it if the broker auto-creates
// topics.
func (m *TopicManager) partitions(topic string) ([]int32, error) {
	if err := m.Client.RefreshMetadata(); err != nil {
		return nil, fmt.Errorf("recovery: metadata: %w", err)
	}
	names, err := m.Client.Topics()
	if err != nil {
		return nil, fmt.Errorf("recovery: topics: %w", err)
	}
	if !slices.Contains(names, topic) {
		return nil, nil
	}
	partitions, err := m.Client.Partitions(topic)
	if err != nil {
		return nil, fmt.Errorf("recovery: partitions of %s: %w", topic, err)
	}
	return slices.Sorted(slices.Values(partitions)), nil
}

// GetOffset implements goka.TopicManager. For sarama.OffsetNewest it returns the stable end, and blocks for Limit at most
// while a transaction is open there.
func (m *TopicManager) GetOffset(topic string, partition int32, at int64) (int64, error) {
	if at != sarama.OffsetNewest {
		return m.Client.GetOffset(topic, partition, at)
	}
	ctx := context.Background()
	if m.Context != nil {
		ctx = m.Context(topic)
	}
	var fence func()
	if m.Fence != nil {
		fence = func() { m.Fence(topic, partition) }
	}
	end, err := StableEnd(ctx, m.Client, topic, partition, m.Limit, fence)
	if err == nil {
		end, err = m.end(topic, partition, end)
	}
	if m.Ended != nil {
		m.Ended(topic, partition, end, err)
	}
	return end, err
}

// Close implements goka.TopicManager. It does not close the client.
func (m *TopicManager) Close() error { return nil }
