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

// Inbound is a record that Consume read.
type Inbound = consume.Record

// Consumption is what Consume reads and who handles it: for work that takes long or leaves Kafka, such as a tool or a
// delivery, and would hold up a group graph. Zero values have the defaults named here.
type Consumption struct {
	Group  string
	Topics []string
	// Handle handles one record; it is called from several goroutines. Nil means that the record is done. After an
	// error, or a panic, the consumer starts again at the last commit, after a wait that grows: records behind the
	// failed one that were done already may come again with it.
	//
	// ctx ends when the partition is taken away, or Consume stops, and Drain is over; not before.
	Handle func(ctx context.Context, r Inbound) error
	// Concurrency is how many records are handled at a time; 16.
	Concurrency int
	// Window is how far reading may be ahead of the first record of a partition that is not done, in records: what a
	// crash can repeat; 1000.
	Window int
	// Ordered has records with the same key handled one after another.
	Ordered bool
	// Drain is how long handlers may go on when their partition is taken away or Consume stops; half of the group's
	// rebalance timeout, which is 20 s, and more than a second less than that at most.
	Drain time.Duration
}

// Consume reads topics as a member of a consumer group until ctx ends, from the oldest record where the group is new,
// and then returns nil. Records are handled side by side and committed without gaps: one that takes long holds up
// neither its partition nor the group, and never causes a rebalance. It takes the options that New takes; those about
// tables and topics have no effect, nor has WithInstance.
func Consume(ctx context.Context, brokers []string, c Consumption, opts ...Option) error {
	conf, logger, err := client(brokers, opts)
	if err != nil {
		return err
	}
	err = consume.Run(ctx, consume.Config{
		Brokers: brokers, Group: c.Group, Topics: c.Topics, Handle: c.Handle,
		Sarama:      func() *sarama.Config { return kafka.Copy(conf) },
		Concurrency: c.Concurrency, MaxInFlightPerPartition: c.Window, Ordered: c.Ordered, Drain: c.Drain,
		Logger: logger,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return nil
}

// client is the configuration of a client outside a group graph.
func client(brokers []string, opts []Option) (*sarama.Config, *zap.Logger, error) {
	o := newOptions(opts)
	if len(brokers) == 0 || slices.ContainsFunc(brokers, func(b string) bool { return strings.TrimSpace(b) == "" }) {
		o.refuse("brokers: none, or one without an address")
	}
	conf := o.sarama()
	return conf, o.unit.Logger, errors.Join(o.errs...)
}
