package instance

import (
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/turntable-streams/turntable/internal/kafka"
)

func TestTombstonesAreKeptForTheShortestTimeOfTheTopicsPolicies(t *testing.T) {
	const day, week = "86400000", "604800000"
	for name, c := range map[string]struct {
		policy, deleted, retained string
		want                      time.Duration
		refused                   bool
	}{
		"compaction":                     {"compact", day, "1", 24 * time.Hour, false},
		"deletion":                       {"delete", "1", week, 7 * 24 * time.Hour, false},
		"deletion of nothing":            {"delete", "1", "-1", indefinitely, false},
		"both":                           {"compact,delete", day, week, 24 * time.Hour, false},
		"both, in the other order":       {"delete, compact", day, "60000", time.Minute, false},
		"compaction without tombstones":  {"compact", "0", "-1", 0, false},
		"longer than a duration can say": {"compact", "9223372036854775807", "-1", indefinitely, false},
		"an unknown policy":              {"archive", day, week, 0, true},
		"no policy":                      {"", day, week, 0, true},
		"no number":                      {"compact", "a day", week, 0, true},
		"no value":                       {"compact", "", week, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tombstones(map[string]string{
				cleanupPolicy: c.policy, deleteRetention: c.deleted, retention: c.retained,
			})
			require.Equal(t, c.refused, err != nil, "%v", err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestTombstonesOfATopicAreReadFromTheBroker(t *testing.T) {
	k, err := kfake.NewCluster(kfake.NumBrokers(1))
	require.NoError(t, err)
	defer k.Close()
	client, err := sarama.NewClient(k.ListenAddrs(), kafka.Config())
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	m := &TopicManager{Client: client, Replication: 1}
	require.NoError(t, m.EnsureTableExists("table", 1))
	require.NoError(t, m.EnsureTopicExists("soon", 1, 1,
		map[string]string{"cleanup.policy": "compact", "delete.retention.ms": "60000"}))

	kept, err := m.Tombstones("table")
	require.NoError(t, err)
	require.Equal(t, 24*time.Hour, kept, "the broker's default")
	kept, err = m.Tombstones("soon")
	require.NoError(t, err)
	require.Equal(t, time.Minute, kept)

	k.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.DescribeConfigs}, Err: kerr.TopicAuthorizationFailed, Count: 1})
	kept, err = m.Tombstones("table")
	require.ErrorIs(t, err, ErrNoTopicConfig)
	require.ErrorIs(t, err, sarama.ErrTopicAuthorizationFailed)
	require.ErrorContains(t, err, "table")
	require.Equal(t, AssumedTombstones, kept)

	k.Close()
	_, err = m.Tombstones("table")
	require.Error(t, err)
	require.NotErrorIs(t, err, ErrNoTopicConfig, "a broker that cannot be reached may answer later")
}

func TestCommittedEndDoesNotWaitForOpenTransactions(t *testing.T) {
	for name, c := range map[string]struct {
		transactions []int
		open         bool // a transaction of two records is open at the end
		least, want  int64
	}{
		"empty":                        {nil, false, 0, 0},
		"commit marker":                {[]int{5}, false, 0, 5},
		"abort marker":                 {[]int{5, -7}, false, 0, 5},
		"behind an open transaction":   {[]int{5}, true, 0, 5},
		"only an open transaction":     {nil, true, 0, 0},
		"the reader is at the end":     {[]int{5}, false, 5, 5},
		"the reader is at the marker":  {[]int{5}, false, 6, 6},
		"the reader is before aborted": {[]int{5, -7}, false, 5, 5},
		"the reader is behind":         {[]int{5, 2}, false, 3, 8},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "table"))
			require.NoError(t, err)
			defer k.Close()
			log(t, k.ListenAddrs(), c.transactions...)
			if c.open {
				conf := kafka.Config()
				conf.Producer.Transaction.ID = "g/open"
				p, err := sarama.NewAsyncProducer(k.ListenAddrs(), conf)
				require.NoError(t, err)
				require.NoError(t, p.BeginTxn())
				for range 2 {
					p.Input() <- &sarama.ProducerMessage{Topic: "table", Value: sarama.StringEncoder("v")}
					<-p.Successes()
				}
				defer func() { require.NoError(t, p.AbortTxn()); require.NoError(t, p.Close()) }()
			}
			client, err := sarama.NewClient(k.ListenAddrs(), kafka.Config())
			require.NoError(t, err)
			defer func() { require.NoError(t, client.Close()) }()
			end, err := CommittedEnd(t.Context(), client, "table", 0, c.least)
			require.NoError(t, err)
			require.Equal(t, c.want, end)
		})
	}
}
