package unit

import (
	"net"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/recovery"
)

// The waits of a transactional producer. CONCURRENT_TRANSACTIONS is an ordinary answer while the markers of the
// transaction before are being written: it is asked again after a millisecond, not after Sarama's 100.
const (
	transactionRetries  = 400
	transactionMaxPause = 50 * time.Millisecond
)

func transactionPause(retries, _ int) time.Duration {
	return min(time.Millisecond<<min(retries, 6), transactionMaxPause)
}

// transactionalID names the series of transactions of an instance. Its prefix is the group's: a new owner of a partition
// may fence those and no others.
func (u *Unit) transactionalID() string { return u.transactionPrefix() + u.cfg.Instance }

func (u *Unit) transactionPrefix() string { return u.group + "/" }

// producerConfig is Sarama's configuration of the producer; its initialisation fences an earlier life of the instance.
func (u *Unit) producerConfig() *sarama.Config {
	c := u.cfg.Sarama()
	if u.cfg.Guarantee != ExactlyOnce {
		return c
	}
	c.Producer.Transaction.ID = u.transactionalID()
	c.Producer.Transaction.Timeout = u.cfg.TransactionTimeout
	if c.Producer.Transaction.Timeout == 0 {
		c.Producer.Transaction.Timeout = c.Consumer.Group.Session.Timeout
	}
	c.Producer.Transaction.Retry.Max = transactionRetries
	c.Producer.Transaction.Retry.BackoffFunc = transactionPause
	return c
}

// leasedConfig lets a producer without transactions send nothing once the lease is lost.
func (r *run) leasedConfig() *sarama.Config {
	c := r.unit.producerConfig()
	if r.lease == nil {
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

func (r *run) closer() cut.Closer {
	if r.unit.cfg.Guarantee == ExactlyOnce {
		return cut.NewTransactional(r.async, string(goka.GroupTable(goka.Group(r.unit.group))))
	}
	return cut.NewPlain(r.client)
}

// fence is called while a transaction is open at the end of a table that is being recovered. Only the group's own table
// is this member's to clear: a joined table's writer is nobody it may judge.
func (r *run) fence(topic string, partition int32) {
	u := r.unit
	if topic != string(goka.GroupTable(goka.Group(u.group))) || r.session().Err() != nil {
		return
	}
	fenced, err := recovery.Fence(r.client, u.cfg.Brokers, u.producerConfig, topic, partition, u.transactionPrefix(),
		u.transactionalID())
	if err != nil {
		u.cfg.Logger.Warn("an open transaction on the table is waited for", zap.Int32("partition", partition),
			zap.Error(err))
	}
	if len(fenced) > 0 {
		u.cfg.Logger.Info("ended the transaction of a former owner", zap.Int32("partition", partition),
			zap.Strings("transactional_ids", fenced))
	}
}
