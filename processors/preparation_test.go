package processors_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/embedded"
	"github.com/turntable-streams/turntable/topics"
)

func TestCreatedTopicsHaveTwelvePartitions(t *testing.T) {
	for name, c := range map[string]struct {
		existing int32 // partitions of a topic that exists
		options  []processors.Option
		embedded bool
		want     int
	}{
		"default":             {want: processors.DefaultPartitions},
		"configured":          {options: []processors.Option{processors.WithPartitions(2)}, want: 2},
		"topics that exist":   {existing: 3, want: 3},
		"embedded broker":     {embedded: true, want: 1},
		"embedded, 4 of them": {embedded: true, options: []processors.Option{processors.WithPartitions(4)}, want: 4},
	} {
		t.Run(name, func(t *testing.T) {
			var brokers []string
			if c.embedded {
				broker, err := embedded.Start(embedded.Config{})
				require.NoError(t, err)
				defer func() { require.NoError(t, broker.Close()) }()
				brokers = broker.Addrs()
			} else {
				cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.ClusterID("of an operator"), kfake.DefaultNumPartitions(5))
				require.NoError(t, err)
				defer cluster.Close()
				brokers = cluster.ListenAddrs()
			}
			client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
			require.NoError(t, err)
			defer client.Close()
			admin := kadm.NewClient(client)
			catalog, err := topics.For("harbor")
			require.NoError(t, err)
			if c.existing > 0 {
				_, err := admin.CreateTopic(t.Context(), c.existing, 1, nil, catalog.ToolUse.Name())
				require.NoError(t, err)
			}
			core, logged := observer.New(zap.InfoLevel)
			for range 2 { // the second one creates nothing
				require.NoError(t, processors.EnsureTopics(t.Context(), brokers, append(c.options,
					processors.WithTopics(catalog), processors.WithLogger(zap.New(core)))...))
			}
			listed, err := admin.ListTopics(kadm.WithAuthorizedOps(t.Context()), catalog.MessageInput.Name(), catalog.Table())
			require.NoError(t, err)
			require.Len(t, listed, 2)
			for _, topic := range listed {
				require.Len(t, topic.Partitions, c.want, topic.Topic)
			}
			require.Equal(t, 1, logged.FilterMessageSnippet("topics were created").Len(), "%v", logged.All())
		})
	}
}
