package processors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/consume"
	"github.com/turntable-streams/turntable/internal/kafka"
)

// Consumption configures Consume. A zero value of an optional field selects the default that is documented with it.
type Consumption struct {
	// Group is the consumer group. Topics are the topics to read, at least one. Both are required, and so is Handle.
	Group  string
	Topics []string
	// Handle handles one record and owns its bytes. It is called from several goroutines. Return nil when the record is
	// finished. After an error or a panic, the consumer restarts with backoff from the committed offset: the record is
	// redelivered, and so may be later records that were finished already.
	//
	// When the partition is revoked, or Consume stops, Handle may continue for the time of Drain; then ctx ends. A call
	// that runs for more than a second after that is abandoned, and its record is redelivered.
	Handle func(ctx context.Context, r Inbound) error
	// Concurrency is the largest number of records that are handled at the same time. The default is 16.
	Concurrency int
	// Window is how many records of a partition may be read beyond its first unfinished record. A crash repeats at most
	// this many records of the partition. The default is 1000.
	Window int
	// Ordered handles records of a partition with the same key one after another, in order. Records with a null key are not
	// ordered. By default, records with the same key are handled concurrently.
	Ordered bool
	// Drain is how long handlers may continue after their partition is revoked or Consume stops. The default is half of the
	// group's rebalance timeout. That timeout is 20 s, or the shorter max.poll.interval.ms of WithProperties. Drain must be
	// more than a second shorter than it.
	Drain time.Duration
}

// Consume reads topics as a member of a consumer group. It is for work that takes long or has effects outside Kafka, such
// as a tool call or a delivery, and would block a group graph. A new group starts at the oldest record.
//
// Consume blocks until ctx ends and then returns nil. Its only error, which wraps ErrConfig, is a bad configuration.
// Records are handled concurrently, and only contiguous offsets are committed: a record that takes long delays neither
// its partition nor the group, and does not cause a rebalance. Delivery is at least once.
//
// Consume accepts the options of New; those for tables and topics, and WithInstance, have no effect.
func Consume(ctx context.Context, brokers []string, c Consumption, opts ...Option) error {
	conf, logger, err := client(brokers, opts)
	if err != nil {
		return err
	}
	var handle func(context.Context, *sarama.ConsumerMessage) error // nil if c.Handle is, so that Run returns an error
	if c.Handle != nil {
		handle = func(ctx context.Context, m *sarama.ConsumerMessage) error { return c.Handle(ctx, inboundOf(m)) }
	}
	err = consume.Run(ctx, consume.Config{
		Brokers: brokers, Group: c.Group, Topics: c.Topics, Handle: handle,
		Sarama:      func() *sarama.Config { return kafka.Copy(conf) },
		Concurrency: c.Concurrency, MaxInFlightPerPartition: c.Window, Ordered: c.Ordered, Drain: c.Drain,
		Logger: logger,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return nil
}

// client returns the configuration and the logger of a Kafka client outside a group graph.
func client(brokers []string, opts []Option) (*sarama.Config, *zap.Logger, error) {
	o := newOptions(opts)
	if len(brokers) == 0 || slices.ContainsFunc(brokers, func(b string) bool { return strings.TrimSpace(b) == "" }) {
		o.refuse("brokers: the list is empty or contains a blank address")
	}
	conf := o.sarama()
	return conf, o.instance.Logger, errors.Join(o.errs...)
}
