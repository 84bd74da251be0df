package recovery

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

// ErrPartitions says that a topic exists with another number of partitions than its group needs.
var ErrPartitions = errors.New("recovery: wrong number of partitions")

// TopicManager is Goka's topic manager over a client that it does not own. It knows the virtual timer topic, ends
// tables at their stable end, and creates the group's own topics with a replication of its own choice.
type TopicManager struct {
	Client sarama.Client
	// Virtual is a topic that is not on the broker; it has the partitions of Like.
	Virtual, Like string
	// Replication of the topics it creates; -1 is the broker's default.
	Replication int16
	// LoopConfig is the configuration of a loop topic that it creates: the inputs' retention instead of Goka's default of
	// one hour.
	LoopConfig map[string]string
	// Limit bounds the wait for a foreign transaction at the end of a table.
	Limit time.Duration
	// Fence, if not nil, is called while a transaction is open at the end of a table.
	Fence func(topic string, partition int32)
	// Stored, if not nil, is the offset up to which the local store of a partition has read, -1 for nothing.
	Stored func(topic string, partition int32) int64
	// Ended, if not nil, is told where Goka will stop reading a partition, or why it cannot begin.
	Ended func(topic string, partition int32, end int64, err error)
	// Context is for how long a table is needed, that of the running generation for one of its own partitions: a wait
	// must not outlive it. nil: it may.
	Context func(topic string) context.Context
}

var _ goka.TopicManager = (*TopicManager)(nil)

// EnsureTableExists implements goka.TopicManager.
func (m *TopicManager) EnsureTableExists(topic string, partitions int) error {
	return m.EnsureTopicExists(topic, partitions, int(m.Replication), map[string]string{"cleanup.policy": "compact"})
}

// EnsureStreamExists implements goka.TopicManager.
func (m *TopicManager) EnsureStreamExists(topic string, partitions int) error {
	return m.EnsureTopicExists(topic, partitions, int(m.Replication), m.LoopConfig)
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
	return fmt.Errorf("recovery: topic %s was created and does not appear: %w", topic, err)
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

// partitions asks for all metadata: a request for one topic would create it where the broker creates topics by itself.
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

// GetOffset implements goka.TopicManager: the newest offset is the stable end.
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

// Close implements goka.TopicManager; the client is not its own.
func (m *TopicManager) Close() error { return nil }
