package instance

import (
	"net"
	"time"

	"github.com/IBM/sarama"

	"github.com/turntable-streams/turntable/internal/cut"
)

// sendingConfig returns the configuration of the producer. Without transactions the producer sends nothing once the lease
// is lost.
func (r *run) sendingConfig() *sarama.Config {
	c := r.instance.producerConfig()
	// Sarama would retry after a lost lease or a failed transaction as after a broken connection, twenty times. Without a
	// pause the retries end at once, and the instance restarts.
	pause := c.Producer.Retry.BackoffFunc
	c.Producer.Retry.BackoffFunc = func(retries, most int) time.Duration {
		switch {
		case r.lease.Lost(), r.transactionFailed(), r.gaveUp.Load():
			return 0
		case pause != nil:
			return pause(retries, most)
		}
		return c.Producer.Retry.Backoff
	}
	if r.lease == nil {
		c.Producer.Transaction.Retry.BackoffFunc = r.retryTransaction
		return c
	}
	d := &cut.LeaseDialer{Lease: r.lease, Opaque: c.Net.TLS.Enable}
	if c.Net.Proxy.Enable {
		d.Inner = c.Net.Proxy.Dialer
	} else {
		d.Inner = &net.Dialer{Timeout: c.Net.DialTimeout, KeepAlive: c.Net.KeepAlive, LocalAddr: c.Net.LocalAddr}
	}
	c.Net.Proxy.Enable, c.Net.Proxy.Dialer = true, d
	return c
}

// transactionFailed reports whether the transaction can only be aborted.
func (r *run) transactionFailed() bool {
	r.mu.Lock()
	async := r.async
	r.mu.Unlock()
	return async != nil && async.TxnStatus()&sarama.ProducerTxnFlagInError != 0
}

// endProducer stops sending and waits for the answers to the requests in flight. Goka closes the producer only after it
// has left the group and closed its lookup tables, and the producer would retry rows meanwhile. The wait delays other
// members by the session timeout at most, since no heartbeat is sent during it.
func (r *run) endProducer() {
	r.lease.Drop()
	_ = r.producer.Close() // it never fails
}
