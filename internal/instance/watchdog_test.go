package instance

import (
	"context"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/internal/store"
)

// Compaction removes the last record of a table after its end was probed and before Goka reads it: Goka waits for it.
func TestRecoveryRestartsWhenItsLastRecordIsCompactedAway(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "g-table"))
	require.NoError(t, err)
	defer c.Close()
	conf := kafka.Config()
	p, err := sarama.NewSyncProducer(c.ListenAddrs(), conf)
	require.NoError(t, err)
	for range 3 {
		_, _, err = p.SendMessage(&sarama.ProducerMessage{Topic: "g-table", Key: sarama.StringEncoder("k")})
		require.NoError(t, err)
	}
	require.NoError(t, p.Close())
	client, err := sarama.NewClient(c.ListenAddrs(), kafka.Config())
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()

	s := store.InMemory()
	defer func() { require.NoError(t, s.Close()) }()
	require.NoError(t, s.SetOffset(2))
	watched := func(end int64) error {
		r := &run{client: client, tables: &tables{group: "g-table", reading: map[int32]*reading{0: {store: s, end: end}}}}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); r.watchRecovery(ctx, 20*time.Millisecond) }()
		cause := func() error {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.cause
		}
		if end > 3 {
			require.Eventually(t, func() bool { return cause() != nil }, 10*time.Second, 5*time.Millisecond)
		} else {
			require.Never(t, func() bool { return cause() != nil }, 200*time.Millisecond, 10*time.Millisecond)
		}
		cancel()
		<-done
		return cause()
	}
	require.ErrorIs(t, watched(4), errEndMoved, "the record at 3 is gone")
	require.NoError(t, watched(3), "the end is where it was: Goka is slow, or about to finish")
}
