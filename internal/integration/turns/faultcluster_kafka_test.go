//go:build kafka

package turns

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/turntable-streams/turntable/internal/testing/kafkatest"
	"github.com/turntable-streams/turntable/internal/testing/wiretest"
	"github.com/turntable-streams/turntable/processors"
)

// The topics in which the brokers keep groups and transactions. The leader of a partition coordinates what is in it.
const (
	groupsTopic       = "__consumer_offsets"
	transactionsTopic = "__transaction_state"
)

// nodes of the cluster. Every topic has as many replicas, and what is acknowledged is on two of them.
const nodes = 3

// TestClusterFaults plays what can be done to a cluster of three brokers, one after the other.
func TestClusterFaults(t *testing.T) {
	c := kafkatest.New(t, kafkatest.Options{Nodes: nodes})
	shared := func(*testing.T) *kafkatest.Cluster { return c }
	rows := []fault{
		{name: "leaders of inputs, table, group and transactions moved, three brokers", play: movedLeaders},
		{name: "a leading broker of three lost", play: lostLeader},
		{name: "the group's coordinator of three brokers lost", play: lostGroupCoordinator},
		{
			name: "the transactions' coordinator of three brokers lost", play: lostTransactionCoordinator,
			only: processors.ExactlyOnce,
		},
		{name: "three brokers SIGKILLed and restarted in turn", play: rolledBrokers},
		{name: "the group's coordinator of three brokers SIGSTOPped beyond its session, SIGCONT", play: pausedCoordinator},
	}
	for n := range rows {
		rows[n].alone, rows[n].cluster = true, shared
	}
	playAll(t, rows)
}

// replicated checks that the loss of a broker can be survived: every topic is on all of them, those too that the
// process has created and those of the brokers.
func (f *field) replicated() {
	f.Helper()
	require.NoError(f, f.cluster.InSync(f.ctx))
	f.withTopics(func(admin *kadm.Client) {
		topics, err := admin.ListTopicsWithInternal(f.ctx)
		require.NoError(f, err)
		require.True(f, topics.Has(f.changelog()))
		require.True(f, topics.Has(groupsTopic))
		require.Equal(f, f.guarantee == processors.ExactlyOnce, topics.Has(transactionsTopic) && f.transactions(admin))
		topics.EachPartition(func(p kadm.PartitionDetail) {
			require.Len(f, p.Replicas, nodes, "%s/%d", p.Topic, p.Partition)
		})
	})
}

// transactions tells whether the processes have transactions.
func (f *field) transactions(admin *kadm.Client) bool {
	listed, err := admin.ListTransactions(f.ctx, nil, nil)
	require.NoError(f, err)
	return slices.ContainsFunc(listed.TransactionalIDs(), func(id string) bool { return id == f.transactionalID("a") })
}

// begin starts a process and turns on brokers that are all well.
func (f *field) begin() {
	f.Helper()
	f.start("a")
	f.ask()
	f.answered(10)
	f.replicated()
}

func movedLeaders(f *field) {
	f.begin()
	moved := 0
	move := func(topic string, partitions int32) {
		for p := range partitions {
			leader, err := f.cluster.Leader(f.ctx, topic, p)
			require.NoError(f, err)
			require.NoError(f, f.cluster.MoveLeader(f.ctx, topic, p, leader%nodes+1))
			moved++
		}
	}
	move(f.changelog(), faultPartitions)
	f.answered(2)
	for _, topic := range wiretest.NamesOf(f.agent).Inputs() {
		move(topic, faultPartitions)
	}
	f.answered(2)
	move(groupsTopic, kafkatest.InternalPartitions)
	f.answered(2)
	if f.guarantee == processors.ExactlyOnce {
		move(transactionsTopic, kafkatest.InternalPartitions)
	}
	f.answered(20)
	f.figure("%d leaders moved", moved)
}

// coordinators are the nodes that coordinate the group and the transactions of the process.
func (f *field) coordinators() (group, transactions int) {
	f.Helper()
	f.withTopics(func(admin *kadm.Client) {
		found := admin.FindGroupCoordinators(f.ctx, wiretest.NamesOf(f.agent).Group)
		require.NoError(f, found.Error())
		found.Each(func(r kadm.FindCoordinatorResponse) { group = int(r.NodeID) })
		if f.guarantee == processors.AtLeastOnce {
			return
		}
		found = admin.FindTxnCoordinators(f.ctx, f.transactionalID("a"))
		require.NoError(f, found.Error())
		found.Each(func(r kadm.FindCoordinatorResponse) { transactions = int(r.NodeID) })
	})
	return group, transactions
}

// lose ends a broker, which stays away until the topics are judged.
func (f *field) lose(node int) {
	f.Helper()
	require.NoError(f, f.cluster.Kill(node))
	f.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(f, f.cluster.Restart(ctx, node))
		require.NoError(f, f.cluster.InSync(ctx))
	})
	f.answered(30)
}

// lostLeader is a broker that leads and coordinates nothing of ours.
func lostLeader(f *field) {
	f.begin()
	group, transactions := f.coordinators()
	node := 1
	for node == group || node == transactions {
		node++
	}
	for _, topic := range append(wiretest.NamesOf(f.agent).Inputs(), f.changelog()) {
		require.NoError(f, f.cluster.MoveLeader(f.ctx, topic, 0, node))
	}
	f.answered(5)
	f.lose(node)
}

func lostGroupCoordinator(f *field) {
	f.begin()
	group, _ := f.coordinators()
	f.lose(group)
}

func lostTransactionCoordinator(f *field) {
	f.begin()
	_, transactions := f.coordinators()
	f.lose(transactions)
}

func rolledBrokers(f *field) {
	f.begin()
	for node := 1; node <= nodes; node++ {
		require.NoError(f, f.cluster.Kill(node))
		f.answered(5)
		require.NoError(f, f.cluster.Restart(f.ctx, node))
		require.NoError(f, f.cluster.InSync(f.ctx))
		f.answered(5)
	}
}

func pausedCoordinator(f *field) {
	f.begin()
	group, _ := f.coordinators()
	require.NoError(f, f.cluster.Pause(group))
	paused := time.Now()
	f.answered(20)
	select {
	case <-time.After(time.Until(paused.Add(2 * kafkatest.BrokerSession))):
	case <-f.ctx.Done():
	}
	require.NoError(f, f.cluster.Resume(group))
	require.NoError(f, f.cluster.InSync(f.ctx))
	f.answered(20)
	f.figure("paused for %s", time.Since(paused).Round(100*time.Millisecond))
}
