// Package kafka makes Sarama configurations: a base configuration that loses and repeats no records, the mapping of Kafka's
// own property names onto it (TLS and SASL included), and timeouts for brokers that hang.
package kafka

import (
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
)

// The limits of the base configuration that other packages rely on.
const (
	// SessionTimeout is how long the broker waits for a heartbeat before it removes a member from its group.
	SessionTimeout = 10 * time.Second
	// HeartbeatInterval is short because the lease on sends is measured from the last acknowledged heartbeat, and because a
	// member learns of a rebalance by it: all members that have joined wait for the last one.
	HeartbeatInterval = 300 * time.Millisecond
	// RebalanceTimeout bounds how long a member may take to rejoin; its drain must end well before that.
	RebalanceTimeout = 20 * time.Second
	// minRebalanceTimeout leaves room for a drain of five seconds.
	minRebalanceTimeout = 8 * time.Second
	// MaxMessageBytes is the size of the largest record that is sent, before compression. It matches a broker's default
	// (message.max.bytes is 1 MiB and the overhead of a batch).
	MaxMessageBytes = 1 << 20
)

// Config returns a new configuration at every call, which the caller may change. It differs from Goka's default where that
// default loses, skips, repeats or delays records: the producer is idempotent with acks=all, sends at once, and has one
// request in flight; the consumer starts at the oldest offset, reads committed records only, and does not commit offsets
// by itself; keys are partitioned as Java does.
func Config() *sarama.Config {
	// Goka's default carries its copartitioning strategy, without which its processors refuse to start.
	c := goka.DefaultConfig()
	c.Version = sarama.V3_6_0_0
	c.ClientID = "turntable"
	c.MetricRegistry = newUnmeasured()
	c.Metadata.AllowAutoTopicCreation = false
	c.Metadata.RefreshFrequency = time.Minute
	c.Admin.Timeout = 15 * time.Second

	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Producer.Idempotent = true
	c.Net.MaxOpenRequests = 1
	c.Producer.MaxMessageBytes = MaxMessageBytes
	c.Producer.Partitioner = sarama.NewCustomHashPartitioner(codec.KeyHasher())
	// Both zero: a record is sent at once, and records that arrive while a request is in flight form the next one. With
	// Frequency zero and Bytes set, Sarama would never send.
	c.Producer.Flush.Frequency = 0
	c.Producer.Flush.Bytes = 0
	c.Producer.Flush.Messages = 0
	c.Producer.Compression = sarama.CompressionNone
	c.Producer.Retry.Max = 20
	c.Producer.Retry.BackoffFunc = retryBackoff

	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Offsets.AutoCommit.Enable = false
	c.Consumer.IsolationLevel = sarama.ReadCommitted
	// Stop, revocation and the first read of a new claim wait for the fetch in flight. Records never wait for it.
	c.Consumer.MaxWaitTime = 250 * time.Millisecond
	c.Consumer.Retry.Backoff = 250 * time.Millisecond
	// A claim may wait this long for a cut before Sarama stops fetching for it: above any drain.
	c.Consumer.MaxProcessingTime = 10 * time.Second
	c.Consumer.Group.Session.Timeout = SessionTimeout
	c.Consumer.Group.Heartbeat.Interval = HeartbeatInterval
	c.Consumer.Group.Rebalance.Timeout = RebalanceTimeout
	c.Consumer.Group.Rebalance.Retry.Backoff = 250 * time.Millisecond
	c.Consumer.Group.Rebalance.Retry.Max = 20
	return c
}

// Copy returns a copy of cfg for another client, with a metric registry and a TLS configuration of its own.
func Copy(cfg *sarama.Config) *sarama.Config {
	c := *cfg
	c.MetricRegistry = newUnmeasured()
	if c.Net.TLS.Config != nil {
		c.Net.TLS.Config = c.Net.TLS.Config.Clone()
	}
	return &c
}

// retryBackoff retries soon after a first failure, and waits longer for a leader election: 20 retries last about ten
// seconds.
func retryBackoff(retries, _ int) time.Duration {
	backoff := 5 * time.Millisecond
	for range min(retries-1, 7) {
		backoff *= 2
	}
	return backoff
}
