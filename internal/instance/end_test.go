package instance

import (
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/internal/kafka"
)

// log writes transactions to a partition: each of the given size, and committed or aborted.
func log(t *testing.T, brokers []string, transactions ...int) {
	t.Helper()
	conf := kafka.Config()
	conf.Producer.Transaction.ID = "g/i1"
	p, err := sarama.NewAsyncProducer(brokers, conf)
	require.NoError(t, err)
	for _, n := range transactions {
		require.NoError(t, p.BeginTxn())
		for range max(n, -n) {
			p.Input() <- &sarama.ProducerMessage{Topic: "table", Value: sarama.StringEncoder("v")}
			<-p.Successes()
		}
		if n > 0 {
			require.NoError(t, p.CommitTxn())
		} else {
			require.NoError(t, p.AbortTxn())
		}
	}
	require.NoError(t, p.Close())
}

// A probe that takes several fetches must know the aborted transactions in each.
func TestLargeAbortedRecordsAreNotTakenForCommittedOnes(t *testing.T) {
	k, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "table"))
	require.NoError(t, err)
	defer k.Close()
	conf := kafka.Config()
	conf.Producer.Transaction.ID = "g/i1"
	p, err := sarama.NewAsyncProducer(k.ListenAddrs(), conf)
	require.NoError(t, err)
	for n := range 8 { // one committed, seven aborted
		require.NoError(t, p.BeginTxn())
		for _, size := range []int{400_000, 900_000} {
			p.Input() <- &sarama.ProducerMessage{Topic: "table", Value: sarama.ByteEncoder(make([]byte, size))}
			<-p.Successes()
		}
		if n == 0 {
			require.NoError(t, p.CommitTxn())
		} else {
			require.NoError(t, p.AbortTxn())
		}
	}
	require.NoError(t, p.Close())
	client, err := sarama.NewClient(k.ListenAddrs(), kafka.Config())
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	end, err := StableEnd(t.Context(), client, "table", 0, time.Minute, nil)
	require.NoError(t, err)
	require.Equal(t, int64(2), end)
}

func TestTableEndsBehindItsLastCommittedRecord(t *testing.T) {
	for name, c := range map[string]struct {
		transactions []int
		stored       int64
		want         int64
	}{
		"empty":                                 {nil, -1, 0},
		"commit marker":                         {[]int{5}, -1, 5},
		"abort marker":                          {[]int{5, -7}, -1, 5},
		"aborted only":                          {[]int{-7}, -1, 0},
		"many aborted":                          {[]int{2, -40}, -1, 2},
		"store is at the end":                   {[]int{5}, 4, 5},
		"store is behind":                       {[]int{5}, 2, 5},
		"what the store has was compacted away": {[]int{-7}, 3, 4},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "table"))
			require.NoError(t, err)
			defer k.Close()
			log(t, k.ListenAddrs(), c.transactions...)
			client, err := sarama.NewClient(k.ListenAddrs(), kafka.Config())
			require.NoError(t, err)
			defer func() { require.NoError(t, client.Close()) }()
			m := &TopicManager{
				Client: client, Limit: time.Minute, Stored: func(string, int32) int64 { return c.stored },
			}
			end, err := m.GetOffset("table", 0, sarama.OffsetNewest)
			require.NoError(t, err)
			require.Equal(t, c.want, end)

			m.Stored = func(string, int32) int64 { return 1000 }
			_, err = m.GetOffset("table", 0, sarama.OffsetNewest)
			require.ErrorIs(t, err, ErrShorter)
		})
	}
}

func TestEndOfDataInARange(t *testing.T) {
	for name, c := range map[string]struct {
		transactions []int
		from, to     int64
		want         int64
	}{
		"commit marker":            {[]int{5}, 5, 6, 5},
		"record before the marker": {[]int{5}, 4, 6, 5},
		"all":                      {[]int{5}, 0, 6, 5},
		"not up to the end":        {[]int{5}, 0, 3, 3},
		"aborted":                  {[]int{5, -40}, 5, 47, 5},
		"between markers":          {[]int{5, -7, 1}, 6, 16, 15},
		"before the last":          {[]int{5, -7, 1}, 6, 14, 6},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "table"))
			require.NoError(t, err)
			defer k.Close()
			log(t, k.ListenAddrs(), c.transactions...)
			client, err := sarama.NewClient(k.ListenAddrs(), kafka.Config())
			require.NoError(t, err)
			defer func() { require.NoError(t, client.Close()) }()
			end, settled, err := DataEnd(t.Context(), client, "table", 0, c.from, c.to)
			require.NoError(t, err)
			require.True(t, settled)
			require.Equal(t, c.want, end)

			admin, err := sarama.NewClusterAdminFromClient(client)
			require.NoError(t, err)
			require.NoError(t, admin.DeleteRecords("table", map[int32]int64{0: c.to}))
			end, settled, err = DataEnd(t.Context(), client, "table", 0, c.from, c.to)
			require.NoError(t, err)
			require.True(t, settled)
			require.Equal(t, c.from, end, "no record is left")
		})
	}
}

func TestEndOfDataIsUnknownDuringATransaction(t *testing.T) {
	k, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "table"))
	require.NoError(t, err)
	defer k.Close()
	client, err := sarama.NewClient(k.ListenAddrs(), kafka.Config())
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	conf := kafka.Config()
	conf.Producer.Transaction.ID = "g/i1"
	p, err := sarama.NewAsyncProducer(k.ListenAddrs(), conf)
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	require.NoError(t, p.BeginTxn())
	p.Input() <- &sarama.ProducerMessage{Topic: "table", Value: sarama.StringEncoder("v")}
	<-p.Successes()
	_, settled, err := DataEnd(t.Context(), client, "table", 0, 0, 1)
	require.NoError(t, err)
	require.False(t, settled)
	require.NoError(t, p.AbortTxn())
	end, settled, err := DataEnd(t.Context(), client, "table", 0, 0, 1)
	require.NoError(t, err)
	require.True(t, settled)
	require.Zero(t, end)
}

// The first requests of a client can overtake its connection.
func TestEndIsKnownWhileTheClientConnects(t *testing.T) {
	k, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "table"))
	require.NoError(t, err)
	defer k.Close()
	for range 300 {
		client, err := sarama.NewClient(k.ListenAddrs(), kafka.Config())
		require.NoError(t, err)
		var asked errgroup.Group
		for range 8 {
			asked.Go(func() error {
				_, err := CommittedEnd(t.Context(), client, "table", 0, 0)
				return err
			})
		}
		require.NoError(t, asked.Wait())
		require.NoError(t, client.Close())
	}
}
