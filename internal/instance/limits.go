package instance

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"go.uber.org/zap"
)

// maxMessageBytes is the setting of a topic for the largest batch of records that it accepts.
const maxMessageBytes = "max.message.bytes"

// describeLimits reads the limits of the topics that the group writes. Where the brokers do not return the configuration of a
// topic, its limit is learned from what they refuse, which costs a restart of the instance.
func (r *run) describeLimits() {
	inst := r.instance
	if inst.cfg.Limits == nil {
		return
	}
	described, err := r.topics.maxMessageBytes(r.written())
	if err != nil {
		inst.cfg.Logger.Info("the size limits of topics are not known: each refused record restarts the instance once", zap.Error(err))
	}
	less := inst.cfg.Limits.Describe(described)
	if len(less) == 0 {
		return
	}
	var names []string
	for topic := range less {
		names = append(names, fmt.Sprintf("%s %d", topic, described[topic]))
	}
	slices.Sort(names)
	inst.cfg.Logger.Warn("topics accept only smaller records than the client sends (max.message.bytes): larger ones are refused "+
		"before they are sent", zap.String("topics", strings.Join(names, ", ")))
}

// written returns the topics that the group writes.
func (r *run) written() (topics []string) {
	graph := r.instance.cfg.Graph
	for _, out := range graph.OutputStreams() {
		topics = append(topics, out.Topic())
	}
	if loop := graph.LoopStream(); loop != nil {
		topics = append(topics, loop.Topic())
	}
	if graph.GroupTable() != nil {
		topics = append(topics, string(goka.GroupTable(graph.Group())))
	}
	return topics
}

// maxMessageBytes returns the limits of topics. Topics that do not exist are left out, and so are those whose configuration the
// brokers do not return; for these there is an error that wraps ErrNoTopicConfig.
func (m *TopicManager) maxMessageBytes(topics []string) (map[string]int, error) {
	admin, err := sarama.NewClusterAdminFromClient(m.Client)
	if err != nil {
		return nil, fmt.Errorf("limits of topics: %w", err)
	}
	var resources []*sarama.ConfigResource
	for _, topic := range topics {
		resources = append(resources, &sarama.ConfigResource{
			Type: sarama.TopicResource, Name: topic, ConfigNames: []string{maxMessageBytes},
		})
	}
	results, err := admin.DescribeConfigs(resources, sarama.DescribeConfigsOptions{})
	if err != nil {
		return nil, fmt.Errorf("limits of topics: %w", err)
	}
	limits := map[string]int{}
	var hidden []string
	for _, r := range results {
		switch {
		case r.ErrorCode == sarama.ErrUnknownTopicOrPartition: // it is created later
		case r.ErrorCode != sarama.ErrNoError:
			hidden, err = append(hidden, r.Name), r.ErrorCode
		default:
			for _, e := range r.Configs {
				if n, err := strconv.Atoi(e.Value); err == nil && e.Name == maxMessageBytes {
					limits[r.Name] = n
				}
			}
		}
	}
	if len(hidden) > 0 {
		return limits, fmt.Errorf("%w: %s: %w", ErrNoTopicConfig, strings.Join(hidden, ", "), err)
	}
	return limits, nil
}
