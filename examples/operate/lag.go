package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/turntable-streams/turntable/processors/operations"
)

// lagCommand shows how far groups are behind.
type lagCommand struct {
	Group  string `help:"Only this group, by its whole name."`
	Behind bool   `help:"Only partitions with a lag."`
}

// lagList is the JSON of the command lag.
type lagList struct {
	Agent  string                `json:"agent"`
	Groups []operations.GroupLag `json:"groups"`
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

func (c *lagCommand) read(cluster *cluster, o *operator) (lagList, error) {
	names := slices.DeleteFunc(operations.GroupNames(cluster.catalog), func(name string) bool { return c.Group != "" && c.Group != name })
	groups, err := operations.Lags(cluster.client, cluster.admin, names, cluster.exists)
	for i := range groups {
		groups[i].Partitions = slices.DeleteFunc(groups[i].Partitions, func(p operations.PartitionLag) bool { return c.Behind && p.Lag == 0 })
	}
	return lagList{Agent: o.agent, Groups: groups}, err
}
