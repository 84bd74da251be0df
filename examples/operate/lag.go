package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/IBM/sarama"
)

// lagCommand shows how far groups are behind.
type lagCommand struct {
	Group  string `help:"Only this group, by its whole name."`
	Behind bool   `help:"Only partitions with a lag."`
}

// lagList is the JSON of the command lag.
type lagList struct {
	Agent  string     `json:"agent"`
	Groups []groupLag `json:"groups"`
}

// groupLag is a group with committed offsets.
type groupLag struct {
	Group string `json:"group"`
	// State is the state that the broker reports, for example Stable, or Empty without members. Members are its processes.
	State      string         `json:"state"`
	Members    int            `json:"members"`
	Lag        int64          `json:"lag"`
	Partitions []partitionLag `json:"partitions"`
}

type partitionLag struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Committed int64  `json:"committed"`
	End       int64  `json:"end"`
	Lag       int64  `json:"lag"`
}

func (c *lagCommand) Run(ctx context.Context, o *operator) error {
	cluster, err := o.connect(ctx)
	if err != nil {
		return err
	}
	if err := cluster.need(cluster.catalog.Table()); err != nil {
		return err
	}
	list, err := within(ctx, "offsets", func() (lagList, error) { return c.read(cluster, o) })
	if err != nil {
		return err
	}
	if c.Group != "" && len(list.Groups) == 0 {
		return fmt.Errorf("the group %s has no committed offsets: it is none of %s, has never run, or is a share group, which has none; "+
			"see turntable describe", c.Group, o.agent)
	}
	return o.print(list, func(t *columns) {
		t.line("GROUP", "STATE", "MEMBERS", "TOPIC", "PARTITION", "COMMITTED", "END", "LAG")
		for _, g := range list.Groups {
			for _, p := range g.Partitions {
				t.line(g.Group, g.State, g.Members, p.Topic, strconv.Itoa(int(p.Partition)), p.Committed, p.End, p.Lag)
			}
		}
	})
}

// names are the groups of the agent: those with a table and those of workers.
func (c *cluster) groupNames() (names []string) {
	for _, g := range c.catalog.Groups() {
		names = append(names, string(g))
	}
	return append(names, c.catalog.ThinkGroup(), c.catalog.ToolGroup(), c.catalog.CompactGroup(), c.catalog.SinkGroup(),
		c.catalog.PeerSinkGroup(), c.catalog.MemoirGroup())
}

func (c *lagCommand) read(cluster *cluster, o *operator) (lagList, error) {
	list := lagList{Agent: o.agent, Groups: []groupLag{}}
	names := slices.DeleteFunc(cluster.groupNames(), func(name string) bool { return c.Group != "" && c.Group != name })
	if len(names) == 0 {
		return list, nil
	}
	described, err := cluster.admin.DescribeConsumerGroups(names)
	if err != nil {
		return list, err
	}
	states := map[string]*sarama.GroupDescription{}
	for _, d := range described {
		states[d.GroupId] = d
	}
	for _, name := range names {
		g := groupLag{Group: name, State: "Empty", Partitions: []partitionLag{}}
		if d := states[name]; d != nil && d.State != "" {
			g.State, g.Members = d.State, len(d.Members)
		}
		all, err := cluster.committed(name)
		if err != nil {
			return list, fmt.Errorf("group %s: %w", name, err)
		}
		for _, p := range all {
			g.Lag += p.Lag
			if !c.Behind || p.Lag > 0 {
				g.Partitions = append(g.Partitions, p)
			}
		}
		if len(all) > 0 {
			list.Groups = append(list.Groups, g)
		}
	}
	return list, nil
}

// committed returns the partitions of a group with a committed offset, in order.
func (c *cluster) committed(group string) (list []partitionLag, err error) {
	answer, err := c.admin.ListConsumerGroupOffsets(group, nil)
	if errors.Is(err, sarama.ErrGroupIDNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for topic, partitions := range answer.Blocks {
		for partition, block := range partitions {
			if block.Offset < 0 || !c.names[topic] {
				continue
			}
			end, err := c.client.GetOffset(topic, partition, sarama.OffsetNewest)
			if err != nil {
				return nil, fmt.Errorf("end of %s/%d: %w", topic, partition, err)
			}
			list = append(list, partitionLag{topic, partition, block.Offset, end, max(0, end-block.Offset)})
		}
	}
	slices.SortFunc(list, func(a, b partitionLag) int {
		return compare(a.Topic, b.Topic, int64(a.Partition), int64(b.Partition))
	})
	return list, nil
}
