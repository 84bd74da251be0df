// Package kafka makes Sarama configurations: a hardened base, and the mapping of Kafka's own property names onto it.
package kafka

import (
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
)

// The limits of the base configuration that other packages reckon with.
const (
	// SessionTimeout is how long the broker waits for a heartbeat before it takes a member for dead.
	SessionTimeout = 10 * time.Second
	// HeartbeatInterval is short, because the lease on sends is measured from the last acknowledged heartbeat, and because
	// a member learns of a rebalance by it: all that have joined wait for the last one.
	HeartbeatInterval = 300 * time.Millisecond
	// RebalanceTimeout bounds how long a member may drain before it rejoins; a drain must end well before it.
	RebalanceTimeout = 20 * time.Second
	// minRebalanceTimeout leaves room for a drain of five seconds.
	minRebalanceTimeout = 8 * time.Second
	// MaxMessageBytes is the largest record that is sent, before compression: a broker's default (message.max.bytes
	// is 1 MiB and a batch's overhead).
	MaxMessageBytes = 1 << 20
)

// Config returns a configuration of its own at every call, so that whoever gets it may change it. It differs from
// Goka's default where that default loses, skips, repeats or delays records:
// acks=all and idempotent, sent at once, one request in flight; read from the oldest offset, committed records only,
// offsets committed by nobody but the runtime; keys partitioned as Java does it.
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
	// Both zero: a record is sent at once, and what comes while a request is in flight makes up the next one. Frequency
	// zero alone would never send while Bytes is not.
	c.Producer.Flush.Frequency = 0
	c.Producer.Flush.Bytes = 0
	c.Producer.Flush.Messages = 0
	c.Producer.Compression = sarama.CompressionNone
	c.Producer.Retry.Max = 20
	c.Producer.Retry.BackoffFunc = retryBackoff

	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Offsets.AutoCommit.Enable = false
	c.Consumer.IsolationLevel = sarama.ReadCommitted
	// Stop, revocation and the first read of a new claim wait for the fetch that is out. Records never wait for it.
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

// Copy is a configuration for another client: Sarama's clients keep their metrics in it.
func Copy(cfg *sarama.Config) *sarama.Config {
	c := *cfg
	c.MetricRegistry = newUnmeasured()
	if c.Net.TLS.Config != nil {
		c.Net.TLS.Config = c.Net.TLS.Config.Clone()
	}
	return &c
}

// retryBackoff retries at once after a hiccup, and waits longer for a leader that takes its time: 20 retries last
// about ten seconds.
func retryBackoff(retries, _ int) time.Duration {
	backoff := 5 * time.Millisecond
	for range min(retries-1, 7) {
		backoff *= 2
	}
	return backoff
}
