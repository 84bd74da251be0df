package instance

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

// AssumedTombstones is how long a topic is assumed to keep its tombstones if the brokers do not return its configuration.
// It is much less than Kafka's default of a day, since the topic may be configured with less.
const AssumedTombstones = time.Hour

// ErrNoTopicConfig says that the brokers did not return a usable configuration of a topic.
var ErrNoTopicConfig = errors.New("recovery: topic configuration is not available (ACL: DescribeConfigs on the topic)")

// The settings of a topic that determine when a tombstone may be removed, and the value for no limit.
const (
	cleanupPolicy   = "cleanup.policy"
	deleteRetention = "delete.retention.ms"
	retention       = "retention.ms"
	indefinitely    = time.Duration(math.MaxInt64)
)

// Tombstones returns how long, at least, a topic keeps its tombstones. A reader that reads the log up to its end, stops,
// and does not reach the new end within that time may miss a deletion. If the brokers do not return the topic's
// configuration, Tombstones returns AssumedTombstones and an error that wraps ErrNoTopicConfig. It blocks for a request.
func (m *TopicManager) Tombstones(topic string) (time.Duration, error) {
	admin, err := sarama.NewClusterAdminFromClient(m.Client)
	if err != nil {
		return 0, fmt.Errorf("recovery: configuration of %s: %w", topic, err)
	}
	results, err := admin.DescribeConfigs([]*sarama.ConfigResource{{
		Type: sarama.TopicResource, Name: topic, ConfigNames: []string{cleanupPolicy, deleteRetention, retention},
	}}, sarama.DescribeConfigsOptions{})
	if err != nil {
		return 0, fmt.Errorf("recovery: configuration of %s: %w", topic, err)
	}
	config := map[string]string{}
	for _, r := range results {
		if r.ErrorCode != sarama.ErrNoError {
			return AssumedTombstones, fmt.Errorf("%w: %s: %w", ErrNoTopicConfig, topic, r.ErrorCode)
		}
		for _, e := range r.Configs {
			config[e.Name] = e.Value
		}
	}
	kept, err := tombstones(config)
	if err != nil {
		return AssumedTombstones, fmt.Errorf("%w: %s: %w", ErrNoTopicConfig, topic, err)
	}
	return kept, nil
}

// tombstones computes Tombstones from the settings of a topic.
func tombstones(config map[string]string) (time.Duration, error) {
	kept, policies := indefinitely, 0
	for _, policy := range strings.Split(config[cleanupPolicy], ",") {
		name := ""
		switch strings.TrimSpace(policy) {
		case "compact":
			name = deleteRetention
		case "delete":
			name = retention
		default:
			continue
		}
		policies++
		ms, err := strconv.ParseInt(config[name], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		if ms >= 0 && ms < math.MaxInt64/int64(time.Millisecond) { // -1 is no limit
			kept = min(kept, time.Duration(ms)*time.Millisecond)
		}
	}
	if policies == 0 {
		return 0, fmt.Errorf("%s %q", cleanupPolicy, config[cleanupPolicy])
	}
	return kept, nil
}
