package think_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/embedded"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

const waitLimit = time.Minute

// One call at a time, and a pause that is longer than the lock of a record: the step that waits leaves the place to the other
// model and is not delivered again.
func TestRateLimitOfAModelDelaysNoOtherModelInBothModes(t *testing.T) {
	const pause, lock = 3 * time.Second, "1000"
	for _, mode := range []worker.Mode{worker.ShareGroup, worker.ConsumerGroup} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			b, err := embedded.Start(embedded.Config{})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, b.Close()) })
			client, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...))
			require.NoError(t, err)
			t.Cleanup(client.Close)
			value := lock
			_, err = kadm.NewClient(client).AlterBrokerConfigs(t.Context(), []kadm.AlterConfig{
				{Op: kadm.SetConfig, Name: "group.share.record.lock.duration.ms", Value: &value},
			})
			require.NoError(t, err)
			catalog, err := topics.For("pilot")
			require.NoError(t, err)
			require.NoError(t, topics.EnsureCluster(t.Context(), b.Addrs(), kafka.Config(), catalog))
			to, err := processors.NewPublisher(b.Addrs())
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, to.Close()) })

			var mu sync.Mutex
			var limited time.Time
			calls := map[string]int{}
			answered := make(chan string, 10)
			m := think.Func(func(_ context.Context, s think.Step) (think.Reply, error) {
				mu.Lock()
				defer mu.Unlock()
				calls[s.SessionID]++
				if limited.IsZero() {
					limited = time.Now()
					return think.Reply{}, &think.Unavailable{After: pause, RateLimit: true, Err: think.ErrUnreachable}
				}
				answered <- s.SessionID
				return think.Say("N4."), nil
			})
			w, err := think.New("pilot", to, m, think.Config{
				Config: worker.Config{Concurrency: 1, Mode: mode}, ModelLimit: think.ModelLimit{Model: textOf},
			})
			require.NoError(t, err)
			ctx, stop := context.WithCancel(t.Context())
			ran := make(chan error, 1)
			go func() { ran <- w.Run(ctx, b.Addrs()) }()
			t.Cleanup(func() { stop(); require.NoError(t, <-ran) })
			put := func(session, model string) {
				r := stepOf(session, model)
				out := processors.Outbound{Topic: r.Topic, Key: session, Value: r.Value}
				require.NoError(t, to.Publish(t.Context(), out))
			}
			put("first", "one")
			require.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return !limited.IsZero() }, waitLimit, time.Millisecond)
			put("second", "one")
			put("other", "two")
			require.Equal(t, "other", <-answered)
			mu.Lock()
			require.Less(t, time.Since(limited), pause)
			mu.Unlock()
			require.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return calls["second"] > 0 }, waitLimit, time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			require.GreaterOrEqual(t, time.Since(limited), pause)
			require.Equal(t, 1, calls["second"])
		})
	}
}
