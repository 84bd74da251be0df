package operations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/IBM/sarama"

	"github.com/turntable-streams/turntable/processors"

	"github.com/turntable-streams/turntable/topics"
)

// GroupLag is how far a group with committed offsets is behind. It encodes to JSON.
type GroupLag struct {
	Group string `json:"group"`
	// State is the state that the broker reports, for example Stable, or Empty without members. Members are its processes.
	State      string         `json:"state"`
	Members    int            `json:"members"`
	Lag        int64          `json:"lag"`
	Partitions []PartitionLag `json:"partitions"`
}

// PartitionLag is how far a group is behind in a partition.
type PartitionLag struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Committed int64  `json:"committed"`
	End       int64  `json:"end"`
	Lag       int64  `json:"lag"`
}

// GroupNames are the groups of an agent: those with a table and those of workers.
func GroupNames(c topics.Catalog) (names []string) {
	for _, g := range c.Groups() {
		names = append(names, string(g))
	}
	return append(names, c.ThinkGroup(), c.ToolGroup(), c.CompactGroup(), c.SinkGroup(), c.PeerSinkGroup(), c.MemoirGroup())
}

// Lags asks the brokers how far groups are behind, and leaves out those without committed offsets: they have never run, or are share
// groups. exists reports whether the brokers have a topic. It takes requests for each group and partition.
func Lags(client sarama.Client, admin sarama.ClusterAdmin, names []string, exists func(topic string) bool) ([]GroupLag, error) {
	list := []GroupLag{}
	if len(names) == 0 {
		return list, nil
	}
	described, err := admin.DescribeConsumerGroups(names)
	if err != nil {
		return list, err
	}
	states := map[string]*sarama.GroupDescription{}
	for _, d := range described {
		states[d.GroupId] = d
	}
	for _, name := range names {
		g := GroupLag{Group: name, State: "Empty", Partitions: []PartitionLag{}}
		if d := states[name]; d != nil && d.State != "" {
			g.State, g.Members = d.State, len(d.Members)
		}
		if g.Partitions, err = committed(client, admin, name, exists); err != nil {
			return list, fmt.Errorf("group %s: %w", name, err)
		}
		for _, p := range g.Partitions {
			g.Lag += p.Lag
		}
		if len(g.Partitions) > 0 {
			list = append(list, g)
		}
	}
	return list, nil
}

// committed returns the partitions of a group with a committed offset, in order.
func committed(
	client sarama.Client, admin sarama.ClusterAdmin, group string, exists func(topic string) bool,
) (list []PartitionLag, err error) {
	answer, err := admin.ListConsumerGroupOffsets(group, nil)
	if errors.Is(err, sarama.ErrGroupIDNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for topic, partitions := range answer.Blocks {
		for partition, block := range partitions {
			if block.Offset < 0 || !exists(topic) {
				continue
			}
			end, err := client.GetOffset(topic, partition, sarama.OffsetNewest)
			if err != nil {
				return nil, fmt.Errorf("end of %s/%d: %w", topic, partition, err)
			}
			list = append(list, PartitionLag{topic, partition, block.Offset, end, max(0, end-block.Offset)})
		}
	}
	slices.SortFunc(list, func(a, b PartitionLag) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return list, nil
}

// ReadLags is Lags for all groups of an agent, with a connection of its own that it closes. It fails when ctx ends.
func ReadLags(ctx context.Context, brokers []string, c topics.Catalog, opts ...processors.Option) ([]GroupLag, error) {
	client, err := processors.Connect(ctx, brokers, opts...)
	if err != nil {
		return nil, err
	}
	return within(ctx, func() ([]GroupLag, error) {
		defer func() { _ = client.Close() }()
		names, err := client.Topics()
		if err != nil {
			return nil, err
		}
		admin, err := sarama.NewClusterAdminFromClient(client)
		if err != nil {
			return nil, err
		}
		return Lags(client, admin, GroupNames(c), func(topic string) bool { return slices.Contains(names, topic) })
	})
}
