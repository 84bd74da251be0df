//go:build kafka

package instance_test

import (
	"context"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/instance"
	"github.com/turntable-streams/turntable/internal/testing/kafkatest"
)

// A leader that alone has the newest records is lost, and a replica without them is elected: the group has read what is
// not in the log any more.
func TestGroupContinuesAfterAnUncleanLeaderElection(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c := kafkatest.New(t, kafkatest.Options{Nodes: 3, Properties: map[string]string{
		"min.insync.replicas": "1", "transaction.state.log.min.isr": "1",
	}})
	brokers := c.Bootstrap()
	client := dial(t, brokers)
	admin := kadm.NewClient(client)
	unclean := "true"
	create := kmsg.NewPtrCreateTopicsRequest()
	in := kmsg.NewCreateTopicsRequestTopic()
	in.Topic, in.NumPartitions, in.ReplicationFactor = "in", -1, -1
	in.ReplicaAssignment = []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Partition: 0, Replicas: []int32{1, 2}}}
	in.Configs = []kmsg.CreateTopicsRequestTopicConfig{{Name: "unclean.leader.election.enable", Value: &unclean}}
	create.Topics = append(create.Topics, in)
	created, err := create.RequestWith(ctx, client)
	require.NoError(t, err)
	require.Zero(t, created.Topics[0].ErrorCode)
	outs := map[instance.Guarantee]string{instance.AtLeastOnce: "out-alo", instance.ExactlyOnce: "out-eo"}
	_, err = admin.CreateTopics(ctx, 1, 3, nil, outs[instance.AtLeastOnce], outs[instance.ExactlyOnce])
	require.NoError(t, err)

	// read runs both groups until they have as many outputs as are wanted, and everything is committed.
	read := func(want ...string) {
		t.Helper()
		for g, out := range outs {
			group := "to-" + out
			inst := run(t, instance.Config{
				Brokers: brokers, InstanceID: "i", Sarama: lively, Guarantee: g,
				Graph: goka.DefineGroup(goka.Group(group), goka.Output(goka.Stream(out), codec.String()),
					goka.Input("in", codec.String(), func(ctx goka.Context, m any) {
						ctx.Emit(goka.Stream(out), ctx.Key(), m.(codec.Decoded[string]).Value)
					})),
			})
			require.Equal(t, want, values(take(t, brokers, out, len(want))))
			inst.stop()
			require.NoError(t, inst.wait(t))
			t.Logf("%s: committed %d", group, committedAt(t, admin, group, "in", 0))
		}
	}
	write := func(values ...string) {
		t.Helper()
		for _, v := range values {
			producer := dial(t, brokers, kgo.RecordPartitioner(kgo.ManualPartitioner()))
			require.NoError(t, producer.ProduceSync(ctx, keyed("in", "k", v)).FirstErr())
		}
	}

	write("1", "2", "3")
	read("1", "2", "3")
	require.NoError(t, c.Kill(2))
	write("lost", "lost too", "and this")
	read("1", "2", "3", "lost", "lost too", "and this")
	require.NoError(t, c.Kill(1))
	require.NoError(t, c.Restart(ctx, 2))
	leader, err := c.Leader(ctx, "in", 0)
	require.NoError(t, err)
	require.Equal(t, 2, leader)
	write("4", "5")
	read("1", "2", "3", "lost", "lost too", "and this", "4", "5")
}
