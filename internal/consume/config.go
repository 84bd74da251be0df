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

// ErrConfig is wrapped by the errors about an invalid configuration.
var ErrConfig = errors.New("consume: bad configuration")

// Config configures Run. Each field states the default that its zero value stands for.
type Config struct {
	Brokers []string
	Group   string
	Topics  []string
	// Sarama returns a new client configuration at every call; Run changes it. Default: kafka.Config.
	Sarama func() *sarama.Config
	// Handle handles one record and owns its bytes. It is called from several goroutines. Nil means that the record is handled and may be
	// committed. After an error or a panic no new record is handled, and the member restarts from the last commit with
	// exponential backoff. The failed record is redelivered, and with it later records that were already handled.
	//
	// ctx ends when the partition is revoked or Run stops, after Drain. A handler that runs for more than a second after
	// that is abandoned: its record is redelivered, to this member or to another.
	Handle func(ctx context.Context, r *sarama.ConsumerMessage) error
	// Concurrency is how many records are handled at a time, over all partitions. Default: 16.
	Concurrency int
	// MaxInFlightPerPartition is how many records of a partition may be read from the first one that is not handled. After
	// a crash as many can be redelivered. Default: 1000.
	MaxInFlightPerPartition int
	// Ordered handles records with the same key one after another, in the order of their offsets. Records without a key
	// are not ordered.
	Ordered bool
	// Drain is how long handlers may keep running after their partition is revoked or Run stops. It must be more than a
	// second shorter than the client's rebalance timeout. Default: half of that timeout.
	Drain time.Duration
	// CommitEvery is the interval of offset commits; the end of a session commits too. Default: 1 s.
	CommitEvery time.Duration
	// Logger logs restarts and errors of the client, but no record's key or value. Default: none.
	Logger *zap.Logger
	// Assigned is called with the number of assigned partitions after every rebalance. It must not block. Default: none.
	Assigned func(partitions int)
}

const (
	defaultConcurrency = 16
	defaultInFlight    = 1000
	defaultCommitEvery = time.Second
	// grace is how long drain waits for a handler after its context has ended.
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
		refuse("no topics, or an empty topic name")
	}
	if c.Handle == nil {
		refuse("no handler")
	}
	if c.Concurrency < 0 || c.MaxInFlightPerPartition < 0 || c.Drain < 0 || c.CommitEvery < 0 {
		refuse("negative Concurrency, MaxInFlightPerPartition, Drain or CommitEvery")
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
		refuse("Drain %s must be more than 1s shorter than the rebalance timeout %s", c.Drain, limit)
	}
	return c, errors.Join(errs...)
}

// client returns the configuration of the group's Kafka client.
func (c Config) client() *sarama.Config {
	conf := c.Sarama()
	// Only offsets of handled records are marked, so Sarama may commit them at any time.
	conf.Consumer.Offsets.AutoCommit.Enable = true
	conf.Consumer.Offsets.AutoCommit.Interval = c.CommitEvery
	conf.Consumer.Return.Errors = true
	// No static membership: when a static member stops, its partitions stay assigned to it until its session times out.
	conf.Consumer.Group.InstanceId = ""
	// The strategies that librdkafka offers too, so that workers in other languages can join the same group.
	conf.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{
		sarama.NewBalanceStrategyRange(), sarama.NewBalanceStrategyRoundRobin(),
	}
	return conf
}
