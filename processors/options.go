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

// ErrConfig is wrapped by every configuration error, such as those of New and FromEnviron. The error names each invalid
// option or edge.
var ErrConfig = errors.New("processors: bad configuration")

// Option configures a Processor. Workers, NewFollower and NewPublisher accept the same options. New returns an error that
// wraps ErrConfig for an option with an invalid value.
type Option func(*options)

type options struct {
	instance    instance.Config
	guarantee   Guarantee // empty: that of the properties, else AtLeastOnce
	properties  map[string]string
	secure      []func(*sarama.Config) error
	recordBytes int
	deadLetters string
	partitions  int32
	catalog     *topics.Catalog
	specs       []topics.Spec
	metrics     Metrics
	errs        []error
}

func newOptions(opts []Option) *options {
	o := &options{properties: map[string]string{}}
	o.instance.Logger = zap.NewNop()
	o.instance.Clock = clock.System()
	for _, opt := range opts {
		opt(o)
	}
	return o
}

func (o *options) refuse(format string, args ...any) {
	o.errs = append(o.errs, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
}

// WithClock sets the clock of deadlines and of Context.Now. The default is the system clock. Heartbeats, leases and
// restarts always use the system clock. Nil is an error.
func WithClock(c Clock) Option {
	return func(o *options) {
		if c == nil {
			o.refuse("WithClock: nil")
			return
		}
		o.instance.Clock = c
	}
}

// WithLogger sets the logger. The default logs nothing. Values of records are not logged at any level. Nil is an error.
func WithLogger(l *zap.Logger) Option {
	return func(o *options) {
		if l == nil {
			o.refuse("WithLogger: nil")
			return
		}
		o.instance.Logger = l
	}
}

// WithTick sets the interval at which due deadlines are checked. A deadline fires within one tick of its time, once the records of
// before it are read (see Timed). The default is 250 ms; the period must be positive.
func WithTick(period time.Duration) Option {
	return func(o *options) {
		if period <= 0 {
			o.refuse("WithTick: %s, want a positive duration", period)
		}
		o.instance.Tick = period
	}
}

// maxCommitInterval is below any drain, and far below the transaction timeout.
const maxCommitInterval = 2 * time.Second

// WithCommitInterval sets the minimum time between two commits: more than 0, at most 2 s.
//
// With AtLeastOnce the default is 100 ms. Offsets are committed and the local store is flushed at most this often. A
// table row is held for a tenth of the interval, in case a newer row of its key replaces it.
//
// With ExactlyOnce there is no interval by default: a transaction is committed whenever no record is in flight. An
// interval increases latency, because outputs are not visible before the commit, and reduces the number of transactions
// and table rows. Set one for groups that fold many small records into few.
func WithCommitInterval(d time.Duration) Option {
	return func(o *options) {
		if d <= 0 || d > maxCommitInterval {
			o.refuse("WithCommitInterval: %s, want more than 0 and at most %s", d, maxCommitInterval)
		}
		o.instance.CommitInterval = d
	}
}

// WithTLS enables TLS on every broker connection. The configuration is cloned. Nil is an error. The default is plaintext.
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

// WithSASL authenticates every broker connection. The mechanism is PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; others are an
// error. The default is no authentication. OAUTHBEARER is configured by WithProperties.
func WithSASL(mechanism, user, password string) Option {
	return func(o *options) {
		o.secure = append(o.secure, func(conf *sarama.Config) error {
			return kafka.SetSASL(conf, mechanism, user, password)
		})
	}
}

// WithProperties sets Kafka client properties by their names in the Java clients and librdkafka, such as
// "compression.type". A property that would break a guarantee is an error, as are sasl.* and ssl.* properties without a
// security.protocol; properties without effect are logged by name. Certificates and keys are PEM files; the error about
// another format contains the commands that convert it. Connections whose servers are not verified, or that send a password
// in clear text, are logged as warnings. SASL OAUTHBEARER takes its tokens from sasl.oauthbearer.token.endpoint.url: by client
// credentials over https, until shortly before they expire, or from a file (file:///path), which is read for every connection.
// Other options take precedence over properties. If WithProperties is given several
// times, the maps are merged.
func WithProperties(properties map[string]string) Option {
	return func(o *options) { maps.Copy(o.properties, properties) }
}

// WithStorage sets where group tables are stored locally. The default is Memory.
func WithStorage(s Storage) Option {
	return func(o *options) {
		if s.err != nil {
			o.refuse("WithStorage: %w", s.err)
		}
		o.instance.StorageDir = s.dir
	}
}

// WithPartitions sets the number of partitions of the topics that WithTopics creates, at least 1. It is an error without
// WithTopics. If topics of the catalog exist, the number must be theirs. The default is theirs, or DefaultPartitions (12).
func WithPartitions(n int32) Option {
	return func(o *options) {
		if n < 1 {
			o.refuse("WithPartitions: %d, want at least 1", n)
		}
		o.partitions = n
	}
}

// WithReplication sets the replication factor of all topics that are created, at least 1. The default is the broker's.
func WithReplication(n int16) Option {
	return func(o *options) {
		if n < 1 {
			o.refuse("WithReplication: %d, want at least 1", n)
		}
		o.instance.Replication = n
	}
}

// WithTopics makes Run create the missing topics of the catalog before it joins the group. Run returns an error if
// co-partitioned topics have different numbers of partitions. Without this option the inputs must exist. The group's own
// topics are always created. The catalog must be the one of the graph's group.
func WithTopics(c topics.Catalog) Option { return func(o *options) { o.catalog = &c } }

// WithTopicSpecs makes Run create these topics, if they are missing, before it joins the group: the inputs and outputs of a graph of
// your own, for example WithTopicSpecs(in.Spec(), out.Spec()). It may be given together with WithTopics. Topics whose spec says
// CoPartitioned get the same number of partitions, as the inputs of one graph need. A graph's output that does not exist is named
// in a warning at the start: its first record, maybe a day later, would stop the processor.
func WithTopicSpecs(specs ...topics.Spec) Option {
	return func(o *options) {
		for _, s := range specs {
			if s.Name == "" {
				o.refuse("WithTopicSpecs: a topic without a name")
			}
		}
		o.specs = append(o.specs, specs...)
	}
}

// WithPredecessor starts this group from the committed offsets of another group, for inputs that this group has no
// committed offsets for. An input that the predecessor has no offsets for starts at its oldest record. Stop the
// predecessor first.
func WithPredecessor(group string) Option {
	return func(o *options) {
		if group == "" {
			o.refuse("WithPredecessor: empty name")
		}
		o.instance.Predecessor = group
	}
}

// WithDeadLetters sets the name of the group's dead-letter topic. The default is "{group}-dlq". The name must not be
// another edge of the graph.
func WithDeadLetters(topic string) Option {
	return func(o *options) {
		if topic == "" {
			o.refuse("WithDeadLetters: empty name")
		}
		o.deadLetters = topic
	}
}

// WithMaxRecordBytes sets the size of the largest record that is sent, in bytes: key, value and headers before
// compression. The default is 1 MiB, the minimum 4 KiB. Topics that allow less (max.message.bytes) are found when the
// processor starts; see Context.MaxRecordBytes.
func WithMaxRecordBytes(n int) Option {
	return func(o *options) {
		if n < minRecordBytes {
			o.refuse("WithMaxRecordBytes: %d, want at least %d", n, minRecordBytes)
		}
		o.recordBytes = n
	}
}

// minRecordBytes leaves enough room for the headers of a dead letter.
const minRecordBytes = 4 << 10

// WithInstance makes the processor a static member of its group (group.instance.id). A member that restarts within the
// session timeout (10 s, or the property session.timeout.ms) gets its partitions back without a rebalance. The ID must be
// unique in the group: a second process with the same ID fences the first, whose Run returns ErrFenced. The default is a
// dynamic member. ExactlyOnce requires an ID.
func WithInstance(id string) Option {
	return func(o *options) {
		if id == "" {
			o.refuse("WithInstance: empty ID")
		}
		o.instance.InstanceID = id
	}
}

// WithKeepMembership makes a static member keep its membership when it stops, for a quick restart. No instance handles its
// partitions until it restarts or its session times out (see WithInstance). By default it leaves, and other members take
// over immediately.
func WithKeepMembership() Option { return func(o *options) { o.instance.KeepMembership = true } }

// WithRestartLimit sets how many consecutive restarts may fail before Run returns ErrGaveUp. The default is 20. A restart
// that commits records has not failed. A negative n means no limit; 0 is an error. Once the processor has been running, restarts that reach no broker are not
// counted: it waits for the brokers indefinitely.
func WithRestartLimit(n int) Option {
	return func(o *options) {
		if n == 0 {
			o.refuse("WithRestartLimit: 0, want at least 1, or a negative number for no limit")
		}
		o.instance.Restart.Limit = n
	}
}

// WithRestartBackoff sets the first and the longest wait before a restart, and before a failed handler is called again. Each
// wait is twice the one before, until records are committed. The defaults are 100 ms and 15 s. initial must be positive, and longest not shorter than initial.
func WithRestartBackoff(initial, longest time.Duration) Option {
	return func(o *options) {
		if initial <= 0 || longest < initial {
			o.refuse("WithRestartBackoff: %s, %s, want a positive first wait and a longest that is not shorter", initial, longest)
		}
		o.instance.Restart.Initial, o.instance.Restart.Max = initial, longest
	}
}

// WithHandlerAttempts sets how often a handler is called with a record or deadline before it is dead-lettered. The default
// is 10: with the default WithRestartBackoff, which also sets the waits between attempts, the last attempt is about 40 s
// after the first. 1 dead-letters a record when its handler has failed once. A negative n means no limit: the partition
// waits until the handler succeeds. 0 is an error. Panics are not attempts: they dead-letter the record at once.
func WithHandlerAttempts(n int) Option {
	return func(o *options) {
		if n == 0 {
			o.refuse("WithHandlerAttempts: 0, want at least 1, or a negative number for no limit")
		}
		o.instance.Attempts = n
	}
}

// Guarantee is a processing guarantee: it says which effects a crash can repeat.
type Guarantee string

const (
	// AtLeastOnce is the default. A crash repeats the effects of the last records, with the same IDs.
	AtLeastOnce Guarantee = "at_least_once"
	// ExactlyOnce writes outputs, table rows and offsets in one Kafka transaction: readers of committed records see each
	// effect once. It requires an instance ID (WithInstance), which the transactional ID is derived from. Readers of
	// uncommitted records (the default of Java consumers) still see repeats.
	ExactlyOnce Guarantee = "exactly_once"
)

// WithGuarantee sets the processing guarantee. The default is AtLeastOnce. "exactly_once_v2", the name in Kafka Streams,
// means ExactlyOnce; other values are an error.
func WithGuarantee(g Guarantee) Option {
	return func(o *options) {
		if _, ok := guarantees[g]; !ok {
			o.refuse("WithGuarantee: %q, want %q or %q", string(g), string(AtLeastOnce), string(ExactlyOnce))
		}
		o.guarantee = g
	}
}

var guarantees = map[Guarantee]instance.Guarantee{
	AtLeastOnce: instance.AtLeastOnce, ExactlyOnce: instance.ExactlyOnce, "exactly_once_v2": instance.ExactlyOnce,
}

// WithMetrics sets callbacks for metrics. The default is none.
func WithMetrics(m Metrics) Option { return func(o *options) { o.metrics = m } }
