package archive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lovoo/goka"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
)

// snapshot reads what the agent has: its topics, where they end, and where its groups are. It returns ErrRunning while a group has
// members, and waits for transactions that are open. Nothing of the agent runs, so that all of it is of one moment.
func (c *cluster) snapshot(ctx context.Context) (*plan, error) {
	p := &plan{Agent: c.Catalog.Agent}
	specs := slices.Concat(c.Catalog.Specs(), c.Specs)
	var names []string
	for _, s := range specs {
		names = append(names, s.Name)
	}
	// By name, a topic that the principal may not describe is an error. In a list of all topics it is missing.
	listed, err := c.topicsOf(ctx, names...)
	if err != nil {
		return nil, err
	}
	set := map[string]bool{} // by name: whether it is co-partitioned
	for _, s := range specs {
		if listed.Has(s.Name) {
			set[s.Name] = s.CoPartitioned
		}
	}
	if len(set) == 0 {
		return nil, fmt.Errorf("%w: no topic of the agent %s exists: check its name and the brokers", ErrConfig, p.Agent)
	}
	if err := c.groupsOf(ctx, p, set, listed); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		t := topic{Name: name, ID: listed[name].ID, Moved: set[name], Parts: make([]span, len(listed[name].Partitions))}
		t.Replication = int16(listed[name].Partitions.NumReplicas())
		p.Topics = append(p.Topics, t)
	}
	if err := c.configs(ctx, p.Topics); err != nil {
		return nil, err
	}
	return p, c.ends(ctx, p.Topics)
}

// topicsOf returns the topics of the cluster, or of some names.
func (c *cluster) topicsOf(ctx context.Context, names ...string) (listed kadm.TopicDetails, err error) {
	err = c.retry(ctx, "list topics", strings.Join(names, ", "), func() (err error) {
		if listed, err = c.admin.ListTopics(ctx, names...); err != nil {
			return err
		}
		for name, d := range listed {
			if errors.Is(d.Err, kerr.UnknownTopicOrPartition) {
				delete(listed, name)
			} else if d.Err != nil && (len(names) > 0 || kerr.IsRetriable(d.Err)) {
				return d.Err
			}
		}
		return nil
	})
	return listed, err
}

// groupsOf reads the offsets of all groups that have some in topics of the set, and adds the tables and loop topics of the groups.
func (c *cluster) groupsOf(ctx context.Context, p *plan, set map[string]bool, listed kadm.TopicDetails) error {
	states, err := c.states(ctx)
	if err != nil {
		return err
	}
	for _, group := range c.groups() { // those that the principal may not see are not listed: reading their offsets is refused
		if _, seen := states[group]; !seen {
			states[group] = state{}
		}
	}
	p.Groups, p.Shares = map[string]map[string]positions{}, map[string]map[string]positions{}
	ours := func(name string) bool { _, ours := set[name]; return ours }
	for _, group := range slices.Sorted(maps.Keys(states)) {
		into, read := p.Groups, c.committed
		if states[group].share {
			into, read = p.Shares, c.finished
		}
		all, err := read(ctx, group)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(all)), ours) {
			continue
		}
		into[group] = all
		own := []string{string(goka.GroupTable(goka.Group(group))), group + "-loop"}
		found, err := c.topicsOf(ctx, own...)
		if err != nil {
			return err
		}
		for name, d := range found {
			if !ours(name) {
				set[name], listed[name] = true, d
			}
		}
	}
	// Only now all topics are known: the offsets of a loop topic are kept with it.
	for _, groups := range []map[string]map[string]positions{p.Groups, p.Shares} {
		for _, all := range groups {
			maps.DeleteFunc(all, func(name string, _ positions) bool { return !ours(name) })
		}
	}
	return c.stopped(states, p)
}

// state is that of a group.
type state struct {
	name  string
	share bool
}

// states returns the states of the groups that the principal may see.
func (c *cluster) states(ctx context.Context) (all map[string]state, err error) {
	err = c.retry(ctx, "list groups", "", func() error {
		all = map[string]state{}
		for _, shard := range c.client.RequestSharded(ctx, kmsg.NewPtrListGroupsRequest()) {
			if shard.Err != nil {
				return shard.Err
			}
			resp := shard.Resp.(*kmsg.ListGroupsResponse)
			if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
				return err
			}
			for _, g := range resp.Groups {
				all[g.Group] = state{g.GroupState, strings.EqualFold(g.GroupType, "share")}
			}
		}
		return nil
	})
	return all, err
}

// stopped returns ErrRunning if a group that reads a topic of the plan, or has the name of one of the agent, has members.
func (c *cluster) stopped(states map[string]state, p *plan) error {
	var running []string
	for _, group := range slices.Sorted(maps.Keys(states)) {
		_, reads := p.Groups[group]
		_, shares := p.Shares[group]
		if (reads || shares || slices.Contains(c.groups(), group)) && states[group].name != "Empty" && states[group].name != "Dead" && states[group].name != "" {
			running = append(running, group)
		}
	}
	if len(running) > 0 {
		return fmt.Errorf("%w: the groups %s have members: stop all processes of the agent, its doors and workers too, wait until "+
			"their sessions have timed out if they were killed, and run the same command again", ErrRunning, strings.Join(running, ", "))
	}
	return nil
}

// groups are the names of the agent's groups.
func (c *cluster) groups() []string {
	t := c.Catalog
	all := []string{t.ThinkGroup(), t.ToolGroup(), t.CompactGroup(), t.SinkGroup(), t.PeerSinkGroup(), t.MemoirGroup(), t.HistoryImportGroup()}
	for _, group := range t.Groups() {
		all = append(all, string(group))
	}
	return all
}

// committed returns the offsets of a consumer group. Offsets of a transaction that is open are waited for.
func (c *cluster) committed(ctx context.Context, group string) (all map[string]positions, err error) {
	err = c.retry(ctx, "read the offsets of group", group, func() error {
		all = map[string]positions{}
		answers, err := c.admin.FetchOffsets(kadm.RequireStable(ctx), group)
		if errors.Is(err, kerr.GroupIDNotFound) {
			return nil
		}
		for topic, partitions := range answers {
			for n, o := range partitions {
				switch {
				case errors.Is(o.Err, kerr.UnknownTopicOrPartition): // it was deleted
				case o.Err != nil:
					return fmt.Errorf("%s/%d: %w", topic, n, o.Err)
				case o.At >= 0:
					add(all, topic, n, position{o.At, o.Metadata})
				}
			}
		}
		return err
	})
	return all, err
}

// finished returns where a share group starts. Records behind that it has finished out of order are delivered once more.
func (c *cluster) finished(ctx context.Context, group string) (all map[string]positions, err error) {
	err = c.retry(ctx, "read the offsets of share group", group, func() error {
		all = map[string]positions{}
		answers, err := c.admin.DescribeShareGroupOffsets(ctx, group)
		if err != nil {
			return err
		}
		if err := answers[group].Err; err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
			return err
		}
		for topic, partitions := range answers[group].Offsets {
			for n, o := range partitions {
				switch {
				case errors.Is(o.Err, kerr.UnknownTopicOrPartition):
				case o.Err != nil:
					return fmt.Errorf("%s/%d: %w", topic, n, o.Err)
				case o.StartOffset >= 0:
					add(all, topic, n, position{At: o.StartOffset})
				}
			}
		}
		return nil
	})
	return all, err
}

func add(all map[string]positions, topic string, n int32, at position) {
	if all[topic] == nil {
		all[topic] = positions{}
	}
	all[topic][n] = at
}

// configs reads what is set for the topics themselves.
func (c *cluster) configs(ctx context.Context, topics []topic) error {
	for i := range topics {
		t := &topics[i]
		if err := c.retry(ctx, "read the configuration of", t.Name, func() error {
			answers, err := c.admin.DescribeTopicConfigs(ctx, t.Name)
			if err != nil {
				return err
			}
			t.Config = map[string]string{}
			for _, of := range answers {
				if of.Err != nil {
					return of.Err
				}
				for _, entry := range of.Configs {
					if entry.Source == kmsg.ConfigSourceDynamicTopicConfig && entry.Value != nil && !strings.HasSuffix(entry.Key, ".throttled.replicas") {
						t.Config[entry.Key] = *entry.Value
					}
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// ends reads where the partitions begin and end. It waits for open transactions, which a process that was killed has left: their
// records become visible or not.
func (c *cluster) ends(ctx context.Context, topics []topic) error {
	names := make([]string, len(topics))
	for i, t := range topics {
		names[i] = t.Name
	}
	var starts, ends, stable kadm.ListedOffsets
	for told := false; ; told = true {
		err := c.retry(ctx, "read the ends of", strings.Join(names, ", "), func() (err error) {
			if starts, err = c.admin.ListStartOffsets(ctx, names...); err == nil {
				if ends, err = c.admin.ListEndOffsets(ctx, names...); err == nil {
					stable, err = c.admin.ListCommittedOffsets(ctx, names...)
				}
			}
			return errors.Join(err, starts.Error(), ends.Error(), stable.Error())
		})
		if err != nil {
			return err
		}
		open := ""
		ends.Each(func(o kadm.ListedOffset) {
			if s, _ := stable.Lookup(o.Topic, o.Partition); s.Offset < o.Offset {
				open = fmt.Sprintf("%s/%d", o.Topic, o.Partition)
			}
		})
		if open == "" {
			break
		}
		if !told {
			c.log.Warn("a transaction is open: waiting until it ends or times out", zap.String("partition", open))
		}
		if err := pause(ctx, longWait/4); err != nil {
			return fmt.Errorf("archive: a transaction is open on %s: %w; run the same command again later", open, err)
		}
	}
	for i := range topics {
		for n := range topics[i].Parts {
			from, _ := starts.Lookup(topics[i].Name, int32(n))
			to, _ := stable.Lookup(topics[i].Name, int32(n))
			topics[i].Parts[n] = span{from.Offset, to.Offset}
		}
	}
	return nil
}
