package turns

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/processors/worker"
)

// The record of the second session is behind 300 of the first one in the same partition.
func TestSessionWithHundredsOfCallsDelaysAnotherByOneSlot(t *testing.T) {
	for _, mode := range []worker.Mode{best(), worker.ConsumerGroup} {
		t.Run(mode.String(), func(t *testing.T) {
			r := newRig(t, mode)
			client, err := kgo.NewClient(kgo.SeedBrokers(r.brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
			require.NoError(t, err)
			defer client.Close()
			var records []*kgo.Record
			for i := range 301 {
				key := "busy"
				if i == 300 {
					key = "other"
				}
				records = append(records, &kgo.Record{Topic: r.group + "-in", Partition: 1, Key: []byte(key), Value: fmt.Append(nil, i)})
			}
			require.NoError(t, client.ProduceSync(t.Context(), records...).FirstErr())
			began, finish := make(chan string, 1000), make(chan struct{})
			w, stop := r.run(func(_ context.Context, rec worker.Record) error {
				began <- string(rec.Key)
				<-finish
				return nil
			}, worker.Config{
				Mode: mode, Concurrency: 4, Waiting: 400, Limits: []worker.Limit[worker.Record]{{Name: "service", Concurrency: 4}},
			})
			// A call is known to Health before it asks the limiter; only one that waits takes part in the order.
			require.Eventually(t, func() bool {
				waiting := 0
				for _, c := range w.Health().Calls {
					if c.Waiting {
						waiting++
					}
				}
				return waiting == 301-4
			}, wait, 10*time.Millisecond)
			for range 4 {
				require.Equal(t, "busy", <-began)
			}
			require.Empty(t, began)
			finish <- struct{}{}
			require.Equal(t, "other", <-began)
			close(finish)
			stop()
		})
	}
}
