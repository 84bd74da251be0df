package consume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/kafka"
)

// ErrConfig is wrapped by what Run refuses.
var ErrConfig = errors.New("consume: bad configuration")

// Config is what Run reads and who handles it. Zero values have the defaults named here.
type Config struct {
	Brokers []string
	Group   string
	Topics  []string
	// Sarama returns a configuration of its own at every call, which Run changes; kafka.Config.
	Sarama func() *sarama.Config
	// Handle handles one record; it is called from several goroutines. Nil means that the record is done: it may be
	// committed. After an error, or a panic, nothing new is begun, and the group starts again at the last commit, after
	// a wait that grows; records behind the failed one that were done already come again with it.
	//
	// ctx ends when the partition is taken away, or Run stops, and Drain is over; not before. A handler that outlives
	// it by more than a moment is abandoned: its record comes again, here or elsewhere.
	Handle func(ctx context.Context, r Record) error
	// Concurrency is how many records are handled at a time, over all partitions; 16.
	Concurrency int
	// MaxInFlightPerPartition is how far reading may be ahead of the first record that is not done, in records: what a
	// crash can repeat; 1000.
	MaxInFlightPerPartition int
	// Ordered has records with the same key handled one after another, in the order of their partition. Records without
	// a key have no order.
	Ordered bool
	// Drain is how long handlers may go on when their partition is taken away or Run stops; half of the group's rebalance
	// timeout, which is 20 s, and more than a second less than that at most.
	Drain time.Duration
	// CommitEvery is how often offsets are committed; they are at the end of a session too. 1 s.
	CommitEvery time.Duration
	// Logger gets restarts and what the client reports; no record's key or value is logged. None.
	Logger *zap.Logger
	// Assigned is called with the number of partitions each time the group has given some to this member. It must not
	// block. None.
	Assigned func(partitions int)
}

const (
	defaultConcurrency = 16
	defaultInFlight    = 1000
	defaultCommitEvery = time.Second
	// grace is how long a handler whose context has ended is waited for.
	grace = time.Second
)

func (c Config) withDefaults() (Config, error) {
	var errs []error
	refuse := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
	}
	if len(c.Brokers) == 0 {
		refuse("no brokers")
	}
	if c.Group == "" {
		refuse("no group")
	}
	if len(c.Topics) == 0 || slices.Contains(c.Topics, "") {
		refuse("no topics, or one without a name")
	}
	if c.Handle == nil {
		refuse("no handler")
	}
	if c.Concurrency < 0 || c.MaxInFlightPerPartition < 0 || c.Drain < 0 || c.CommitEvery < 0 {
		refuse("a limit below zero")
	}
	if c.Sarama == nil {
		c.Sarama = kafka.Config
	}
	if c.Concurrency == 0 {
		c.Concurrency = defaultConcurrency
	}
	if c.MaxInFlightPerPartition == 0 {
		c.MaxInFlightPerPartition = defaultInFlight
	}
	limit := c.Sarama().Consumer.Group.Rebalance.Timeout
	if c.Drain == 0 {
		c.Drain = limit / 2
	}
	if c.CommitEvery == 0 {
		c.CommitEvery = defaultCommitEvery
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	if c.Drain+grace >= limit {
		refuse("a drain of %s is as long as a rebalance may take, %s", c.Drain, limit)
	}
	return c, errors.Join(errs...)
}

// client is the configuration of the group's client.
func (c Config) client() *sarama.Config {
	conf := c.Sarama()
	// Marks are never ahead of what is done, so Sarama may commit them as it likes.
	conf.Consumer.Offsets.AutoCommit.Enable = true
	conf.Consumer.Offsets.AutoCommit.Interval = c.CommitEvery
	conf.Consumer.Return.Errors = true
	// A static member that stops would keep its partitions from the others until its session times out.
	conf.Consumer.Group.InstanceId = ""
	// Those that librdkafka offers: workers in other languages may be members of the same group.
	conf.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{
		sarama.NewBalanceStrategyRange(), sarama.NewBalanceStrategyRoundRobin(),
	}
	return conf
}
