package processors

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/instance"
	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/topics"
)

// ErrConfig is wrapped by everything that New refuses; the error names each option or edge.
var ErrConfig = errors.New("processors: bad configuration")

// Clock tells the time and makes tickers. Everything with a deadline goes by it.
type Clock = clock.Clock

// Ticker is a ticker of a Clock.
type Ticker = clock.Ticker

// Option configures a Processor.
type Option func(*options)

type options struct {
	unit        instance.Config
	guarantee   Guarantee // empty: that of the properties, else AtLeastOnce
	properties  map[string]string
	secure      []func(*sarama.Config) error
	recordBytes int
	deadLetters string
	partitions  int32
	catalog     *topics.Catalog
	metrics     Metrics
	errs        []error
}

func newOptions(opts []Option) *options {
	o := &options{properties: map[string]string{}}
	o.unit.Logger = zap.NewNop()
	o.unit.Clock = clock.System()
	for _, opt := range opts {
		opt(o)
	}
	return o
}

func (o *options) refuse(format string, args ...any) {
	o.errs = append(o.errs, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
}

// WithClock sets the clock that deadlines and Context.Now go by; the default is the system's. Intervals that Kafka
// measures too (heartbeats, leases, restarts) do not go by it.
func WithClock(c Clock) Option {
	return func(o *options) {
		if c == nil {
			o.refuse("WithClock: nil")
			return
		}
		o.unit.Clock = c
	}
}

// WithLogger sets the logger; the default logs nothing. No record's value is logged at any level.
func WithLogger(l *zap.Logger) Option {
	return func(o *options) {
		if l == nil {
			o.refuse("WithLogger: nil")
			return
		}
		o.unit.Logger = l
	}
}

// WithTick sets how often deadlines are looked for; the default is 250 ms. A deadline fires within one tick of its
// time.
func WithTick(period time.Duration) Option {
	return func(o *options) {
		if period <= 0 {
			o.refuse("WithTick: %s, want a positive period", period)
		}
		o.unit.Tick = period
	}
}

// maxCommitInterval is below any drain, and far below the transaction timeout.
const maxCommitInterval = 2 * time.Second

// WithCommitInterval sets the least time between two commits, up to 2 s. At least once the default is 100 ms; offsets are
// committed, and the local store written, so long after a record at least. Table rows wait a tenth of it for newer ones of
// their key. Exactly once the default is none: each moment with nothing in flight ends a transaction. A longer interval
// costs latency there, since nothing is visible before the commit, and saves transactions and table rows: it is for
// groups that fold many small records into few.
func WithCommitInterval(d time.Duration) Option {
	return func(o *options) {
		if d <= 0 || d > maxCommitInterval {
			o.refuse("WithCommitInterval: %s, want more than 0 and at most %s", d, maxCommitInterval)
		}
		o.unit.CommitInterval = d
	}
}

// WithTLS has all connections encrypted. The configuration is copied.
func WithTLS(c *tls.Config) Option {
	return func(o *options) {
		if c == nil {
			o.refuse("WithTLS: nil")
			return
		}
		o.secure = append(o.secure, func(conf *sarama.Config) error {
			conf.Net.TLS.Enable, conf.Net.TLS.Config = true, c.Clone()
			return nil
		})
	}
}

// WithSASL authenticates with PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.
func WithSASL(mechanism, user, password string) Option {
	return func(o *options) {
		o.secure = append(o.secure, func(conf *sarama.Config) error {
			return kafka.SetSASL(conf, mechanism, user, password)
		})
	}
}

// WithProperties sets Kafka client properties by the names that Java's clients and librdkafka give them, such as
// "compression.type". Those that would break a promise are refused; those without effect are logged by name. Other
// options win over them.
func WithProperties(properties map[string]string) Option {
	return func(o *options) { maps.Copy(o.properties, properties) }
}

// WithStorage says where group tables are kept; the default is Memory.
func WithStorage(s Storage) Option {
	return func(o *options) {
		if s.err != nil {
			o.refuse("WithStorage: %w", s.err)
		}
		o.unit.StorageDir = s.dir
	}
}

// WithPartitions sets the partitions of topics that WithTopics creates; the default is the broker's.
func WithPartitions(n int32) Option {
	return func(o *options) {
		if n < 1 {
			o.refuse("WithPartitions: %d, want at least 1", n)
		}
		o.partitions = n
	}
}

// WithReplication sets the replication factor of all topics that are created; the default is the broker's.
func WithReplication(n int16) Option {
	return func(o *options) {
		if n < 1 {
			o.refuse("WithReplication: %d, want at least 1", n)
		}
		o.unit.Replication = n
	}
}

// WithTopics has Run create the catalog's topics that are missing, before it joins the group, and refuse a cluster
// where their partitions do not fit together. Without it the inputs must exist; the group's own topics are created in
// any case.
func WithTopics(c topics.Catalog) Option { return func(o *options) { o.catalog = &c } }

// WithPredecessor names a consumer group whose work this one goes on with: where this one has no committed offsets, each
// input starts at those of the predecessor, else at its oldest record. The predecessor must have stopped.
func WithPredecessor(group string) Option {
	return func(o *options) {
		if group == "" {
			o.refuse("WithPredecessor: empty name")
		}
		o.unit.Predecessor = group
	}
}

// WithDeadLetters names the group's dead-letter topic; the default is "{group}-dlq".
func WithDeadLetters(topic string) Option {
	return func(o *options) {
		if topic == "" {
			o.refuse("WithDeadLetters: empty name")
		}
		o.deadLetters = topic
	}
}

// WithMaxRecordBytes sets the size of the largest record that is sent, key, value and headers before compression; the
// default is 1 MiB. The topics must allow as much (max.message.bytes).
func WithMaxRecordBytes(n int) Option {
	return func(o *options) {
		if n < minRecordBytes {
			o.refuse("WithMaxRecordBytes: %d, want at least %d", n, minRecordBytes)
		}
		o.recordBytes = n
	}
}

// minRecordBytes leaves a dead letter room for its headers.
const minRecordBytes = 4 << 10

// WithInstance makes the processor a static member of its group (group.instance.id): a restart within the session
// timeout gets its partitions back without a rebalance. The id must be unique in the group: a second process with it
// fences the first, which ends with ErrFenced. The default is a dynamic member.
func WithInstance(id string) Option {
	return func(o *options) {
		if id == "" {
			o.refuse("WithInstance: empty id")
		}
		o.unit.Instance = id
	}
}

// WithKeepMembership leaves a static member in its group when it stops, for a quick restart; its partitions are handled
// by nobody until then, or until the session times out. By default it leaves, and others take over at once.
func WithKeepMembership() Option { return func(o *options) { o.unit.KeepMembership = true } }

// WithRestartLimit sets how many restarts in a row may fail before Run gives up with ErrGaveUp; the default is 20. With
// a negative n it never does. Those that reach no broker are not counted once the processor has been running: an outage
// of the brokers is waited out, however long it takes.
func WithRestartLimit(n int) Option {
	return func(o *options) {
		if n == 0 {
			o.refuse("WithRestartLimit: 0, want at least 1, or a negative number for no limit")
		}
		o.unit.Restart.Limit = n
	}
}

// WithRestartBackoff sets the first and the longest wait before a restart; each wait doubles the one before. The
// default is 100 ms and 15 s.
func WithRestartBackoff(initial, longest time.Duration) Option {
	return func(o *options) {
		if initial <= 0 || longest < initial {
			o.refuse("WithRestartBackoff: %s, %s, want a positive wait and one that is not shorter", initial, longest)
		}
		o.unit.Restart.Initial, o.unit.Restart.Max = initial, longest
	}
}

// Guarantee is what a crash can repeat.
type Guarantee string

const (
	// AtLeastOnce is the default: a crash repeats the tail of what was done, with the same ids.
	AtLeastOnce Guarantee = "at_least_once"
	// ExactlyOnce shows each effect once to a reader of committed records: outputs, table rows and offsets are one Kafka
	// transaction. It needs an instance id (WithInstance), which is the transactional id's. Readers that read uncommitted
	// records, the default of Java's consumers, still see repeats.
	ExactlyOnce Guarantee = "exactly_once"
)

// WithGuarantee sets the processing guarantee. "exactly_once_v2", the word of Kafka Streams, is ExactlyOnce.
func WithGuarantee(g Guarantee) Option {
	return func(o *options) {
		if _, ok := guarantees[g]; !ok {
			o.refuse("WithGuarantee: %q is no guarantee", string(g))
		}
		o.guarantee = g
	}
}

var guarantees = map[Guarantee]instance.Guarantee{
	AtLeastOnce: instance.AtLeastOnce, ExactlyOnce: instance.ExactlyOnce, "exactly_once_v2": instance.ExactlyOnce,
}
