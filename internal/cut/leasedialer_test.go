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
func TestWhatWaitsBehindARequestIsNotSentOnceTheLeaseIsLost(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "out"))
	require.NoError(t, err)
	defer c.Close()
	held, entered := make(chan struct{}), make(chan struct{}, 10)
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		entered <- struct{}{}
		c.SleepControl(func() { <-held })
		return nil, nil, false
	})

	lease := NewLease(time.Hour, time.Now)
	conf := kafka.Config()
	conf.Producer.Retry.Max = 1
	conf.Net.Proxy.Enable = true
	conf.Net.Proxy.Dialer = &LeaseDialer{Lease: lease, Inner: &net.Dialer{}}
	async, err := sarama.NewAsyncProducer(c.ListenAddrs(), conf) // before the lease is held: it asks for metadata
	require.NoError(t, err)
	lease.Renew(time.Now())
	p := NewProducer(async, ProducerOptions{Table: "table", Lease: lease, Ordered: true, Broken: func(error) {}, Failed: func(error) {}})
	first, second := make(chan error, 1), make(chan error, 1)
	p.Emit("out", "k", []byte("1")).Then(func(err error) { first <- err })
	<-entered
	p.Emit("out", "k", []byte("2")).Then(func(err error) { second <- err })
	lease.Drop()
	close(held)
	require.NoError(t, <-first, "what is on the wire lands")
	require.Error(t, <-second)
	require.NoError(t, p.Close())
	require.Equal(t, int64(1), c.PartitionInfo("out", 0).HighWatermark)
}
