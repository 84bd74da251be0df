package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

var errNoReplica = errors.New("the node has no replica")

// Leader returns the node that leads the partition. It waits until the partition has a leader that is neither down nor
// paused, or until the context ends. It also waits for the topic, which a node may learn of later than its creator.
func (c *Cluster) Leader(ctx context.Context, topic string, partition int32) (int, error) {
	var leader int
	err := c.pollUntil(ctx, func(admin *kadm.Client) (bool, error) {
		detail, err := describe(ctx, admin, topic, partition)
		if err != nil {
			return false, err
		}
		leader = int(detail.Leader)
		return leader >= 1 && leader <= len(c.nodes) && c.nodes[leader-1].isResponsive(), nil
	})
	if err != nil {
		return 0, fmt.Errorf("kafkatest: leader of %s/%d: %w", topic, partition, err)
	}
	return leader, nil
}

// MoveLeader makes a node the leader of the partition and returns when it leads. The node must have a replica; MoveLeader
// waits until that is in sync, or until the context ends.
func (c *Cluster) MoveLeader(ctx context.Context, topic string, partition int32, to int) error {
	err := c.pollUntil(ctx, func(admin *kadm.Client) (bool, error) {
		detail, err := describe(ctx, admin, topic, partition)
		if err != nil || detail.Leader == int32(to) {
			return err == nil, err
		}
		if !slices.Contains(detail.Replicas, int32(to)) {
			return false, errNoReplica
		}
		if !slices.Contains(detail.ISR, int32(to)) {
			return false, nil
		}
		return false, electLeader(ctx, admin, detail, int32(to))
	})
	if err != nil {
		return fmt.Errorf("kafkatest: move leader of %s/%d to node %d: %w", topic, partition, to, err)
	}
	return nil
}

// InSync returns when every replica of every topic, including the internal ones, is in sync. The loss of one of three nodes
// then loses no acknowledged record and stops no partition. If a node is down, InSync waits until the context ends.
func (c *Cluster) InSync(ctx context.Context) error {
	err := c.pollUntil(ctx, func(admin *kadm.Client) (bool, error) {
		topics, err := admin.ListTopicsWithInternal(ctx)
		if err != nil {
			return false, err
		}
		inSync := true
		topics.EachPartition(func(p kadm.PartitionDetail) { inSync = inSync && len(p.ISR) == len(p.Replicas) && p.Leader > 0 })
		return inSync, nil
	})
	if err != nil {
		return fmt.Errorf("kafkatest: replicas in sync: %w", err)
	}
	return nil
}

// electLeader makes the node the first and therefore the preferred replica, and elects it as the leader.
func electLeader(ctx context.Context, admin *kadm.Client, detail kadm.PartitionDetail, to int32) error {
	others := slices.DeleteFunc(slices.Clone(detail.Replicas), func(r int32) bool { return r == to })
	replicas := append([]int32{to}, others...)
	var assignment kadm.AlterPartitionAssignmentsReq
	assignment.Assign(detail.Topic, detail.Partition, replicas)
	assigned, err := admin.AlterPartitionAssignments(ctx, assignment)
	if err = errors.Join(err, assigned.Error()); err != nil {
		return err
	}
	var partitions kadm.TopicsSet
	partitions.Add(detail.Topic, detail.Partition)
	elected, err := admin.ElectLeaders(ctx, kadm.ElectPreferredReplica, partitions)
	if err != nil {
		return err
	}
	result := elected[detail.Topic][detail.Partition]
	// Not needed: an earlier poll elected it. Not available: the replica is no longer in sync; the next poll retries.
	if errors.Is(result.Err, kerr.ElectionNotNeeded) || errors.Is(result.Err, kerr.PreferredLeaderNotAvailable) {
		return nil
	}
	return result.Err
}

func describe(ctx context.Context, admin *kadm.Client, topic string, partition int32) (kadm.PartitionDetail, error) {
	topics, err := admin.ListTopicsWithInternal(ctx, topic)
	if err != nil {
		return kadm.PartitionDetail{}, err
	}
	if err = topics[topic].Err; err != nil {
		return kadm.PartitionDetail{}, err
	}
	detail, ok := topics[topic].Partitions[partition]
	if !ok {
		return kadm.PartitionDetail{}, errors.New("no such partition")
	}
	return detail, nil
}

// isPermanent reports whether a retry cannot succeed. A broken connection is not permanent, because tests kill nodes.
func isPermanent(err error) bool {
	var code *kerr.Error
	return errors.Is(err, errNoReplica) || errors.As(err, &code) && !code.Retriable
}

// pollUntil calls reached with a client of the responsive nodes, until it returns true or a permanent error.
func (c *Cluster) pollUntil(ctx context.Context, reached func(*kadm.Client) (bool, error)) error {
	var addrs []string
	for _, n := range c.nodes {
		if n.isResponsive() {
			addrs = append(addrs, n.port.addr())
		}
	}
	if len(addrs) == 0 {
		return fmt.Errorf("all nodes of the cluster: %w", ErrDown)
	}
	client, err := dial(addrs...)
	if err != nil {
		return err
	}
	defer client.Close()
	poll := time.NewTicker(answerPoll)
	defer poll.Stop()
	for {
		ok, err := reached(kadm.NewClient(client))
		if ok || isPermanent(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-poll.C:
		}
	}
}
