package cut

import (
	"net"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/turntable-streams/turntable/internal/kafka"
)

// A record that waits in the producer behind a request in flight when the lease is lost is not sent any more, though it
// was accepted while the lease was held.
func TestQueuedRecordIsNotSentOnceTheLeaseIsLost(t *testing.T) {
	for name, lose := range map[string]func(*Lease, *clocks){
		"dropped":                   func(l *Lease, _ *clocks) { l.Drop() },
		"run out":                   func(_ *Lease, c *clocks) { c.pass(time.Minute) },
		"the machine was suspended": func(_ *Lease, c *clocks) { c.suspend(time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "out"))
			require.NoError(t, err)
			defer c.Close()
			held, entered := make(chan struct{}), make(chan struct{}, 10)
			c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
				entered <- struct{}{}
				c.SleepControl(func() { <-held })
				return nil, nil, false
			})

			clock := newClocks()
			lease := NewLease(8*time.Second, clock.now)
			conf := kafka.Config()
			conf.Producer.Retry.Max = 1
			conf.Net.Proxy.Enable = true
			conf.Net.Proxy.Dialer = &LeaseDialer{Lease: lease, Inner: &net.Dialer{}}
			async, err := sarama.NewAsyncProducer(c.ListenAddrs(), conf) // before the lease is held: it asks for metadata
			require.NoError(t, err)
			lease.Renew(clock.now())
			p := NewProducer(async, ProducerOptions{
				Table: "table", Lease: lease, Ordered: true, Broken: func(error) {}, Failed: func(error) {},
			})
			first, second, third := make(chan error, 1), make(chan error, 1), make(chan error, 1)
			p.Emit("out", "k", []byte("1")).Then(func(err error) { first <- err })
			<-entered
			p.Emit("out", "k", []byte("2")).Then(func(err error) { second <- err })
			lose(lease, clock)
			p.Emit("out", "k", []byte("3")).Then(func(err error) { third <- err })
			close(held)
			require.NoError(t, <-first, "what is on the wire lands")
			require.Error(t, <-second)
			require.ErrorIs(t, <-third, ErrLease)
			require.NoError(t, p.Close())
			require.Equal(t, int64(1), c.PartitionInfo("out", 0).HighWatermark)
		})
	}
}
