package instance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/cut"
)

// ErrConfig is wrapped by the errors of New, and by those of methods that the configuration does not support.
var ErrConfig = errors.New("instance: bad configuration")

// Config configures an instance. A default is named after a semicolon; it replaces the zero value.
type Config struct {
	Brokers []string
	// Graph is the group. The virtual timer topic is added to it if the codec of its table implements store.Timed.
	Graph *goka.GroupGraph
	// Repartitioned are inputs outside of Graph, which may have any number of partitions: what is sent for their records
	// goes to topics that the graph reads, or to its outputs.
	Repartitioned cut.Repartitioned
	// InstanceID is the static member ID (group.instance.id), unique in the group; empty for a dynamic member.
	InstanceID string
	// Predecessor is a group at whose committed offsets this group starts if it has none of its own; empty for none.
	Predecessor string
	// KeepMembership keeps a static member in the group when Run ends, for a quick restart.
	KeepMembership bool
	// Prepare, if not nil, is called once before the group is joined, while the storage directory is held. Its context ends
	// with that of Run, and when Kill is called. Run returns its error. It calls waits with the reason of each failure after which
	// it tries again: that is Health.Err meanwhile.
	Prepare func(ctx context.Context, waits func(error)) error
	// Sarama returns a new configuration at every call; the instance changes it. Required.
	Sarama func() *sarama.Config
	Logger *zap.Logger   // none
	Clock  clock.Clock   // the system's
	Tick   time.Duration // how often deadlines are checked; 250 ms
	// StorageDir holds the tables of this instance and of no other; if empty, they are in memory.
	StorageDir string
	// Replication is the replication factor of the topics that the instance creates (table, loop, dead letters); 0 and -1
	// are the broker's default.
	Replication int16
	// Limits are the sizes of the records that topics accept. A run reads them from the topics' configurations. Nil: those of
	// the Sarama configuration for all topics.
	Limits *cut.Limits
	// DeadLetters is the topic of the group's dead letters. It is created if the graph has it as an output.
	DeadLetters string
	// Guarantee is AtLeastOnce by default. ExactlyOnce needs an Instance.
	Guarantee Guarantee
	// TransactionTimeout is how long a dead instance's open transaction can block read-committed readers; the session
	// timeout.
	TransactionTimeout time.Duration
	// CommitInterval is the minimum age of a cut; that of the guarantee's policy.
	CommitInterval time.Duration
	// Policy says when cuts are made; cut.AtLeastOncePolicy or cut.ExactlyOncePolicy.
	Policy  cut.Policy
	Restart Restart
	// Attempts is how often a handler is called with a record before the record is given up; 10. Negative: no limit. The
	// waits in between are those of Restart.
	Attempts int
	Hooks    Hooks
}

// Guarantee is the processing guarantee: what a crash can repeat.
type Guarantee int

const (
	// AtLeastOnce may repeat the records since the last cut after a crash, with the same ids.
	AtLeastOnce Guarantee = iota
	// ExactlyOnce repeats nothing that a read-committed consumer sees.
	ExactlyOnce
)

// Restart configures the restarts of an instance that failed. The wait between restarts doubles.
type Restart struct {
	Initial time.Duration // first wait; 100 ms
	Max     time.Duration // longest wait; 15 s
	// Limit is how many consecutive restarts may fail before Run returns ErrGaveUp; 20. Negative: no limit. Once the
	// instance has been Running, restarts that reach no broker are not counted.
	Limit int
	// Reset is how long a run must have lasted for the counter and the wait to be reset; 1 min. A run that has committed
	// records resets them too, however short it was.
	Reset time.Duration
}

// Hooks notify of events. They are called from several goroutines and must not block.
type Hooks struct {
	// State is called with each new state.
	State func(State)
	// Restart is called when an instance has failed and will restart after the wait.
	Restart func(err error, wait time.Duration)
	// Retry is called when a handler has failed and will be called again after the wait.
	Retry func(err error, attempts int, wait time.Duration)
	// Cut is called after each cut whose offsets are committed.
	Cut func(cut.Made)
}

// The defaults of Config.
const (
	DefaultTick           = 250 * time.Millisecond
	defaultRestartInitial = 100 * time.Millisecond
	defaultRestartMax     = 15 * time.Second
	defaultRestartLimit   = 20
	defaultRestartReset   = time.Minute
	defaultAttempts       = 10
)

// check returns an error that joins every reason why the configuration cannot be used.
func (c Config) check() error {
	var errs []error
	refuse := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
	}
	if len(c.Brokers) == 0 {
		refuse("no brokers")
	}
	if c.Graph == nil {
		refuse("no graph")
	} else if err := c.Graph.Validate(); err != nil {
		refuse("graph: %w", err)
	}
	if c.Sarama == nil {
		refuse("no Sarama configuration")
	}
	if c.Guarantee == ExactlyOnce && c.InstanceID == "" {
		refuse("exactly once needs an instance id: the transactional id contains it and fences an earlier run of the instance")
	}
	if c.Guarantee != AtLeastOnce && c.Guarantee != ExactlyOnce {
		refuse("guarantee %d", c.Guarantee)
	}
	if c.Tick < 0 {
		refuse("tick of %s", c.Tick)
	}
	if c.Replication < -1 {
		refuse("replication of %d", c.Replication)
	}
	return errors.Join(errs...)
}

// withDefaults returns the configuration with its defaults.
func (c Config) withDefaults() Config {
	if c.Replication == 0 {
		c.Replication = -1
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	if c.Clock == nil {
		c.Clock = clock.System()
	}
	if c.Tick == 0 {
		c.Tick = DefaultTick
	}
	switch {
	case c.Policy != (cut.Policy{}):
	case c.Guarantee == ExactlyOnce:
		c.Policy = cut.ExactlyOncePolicy()
	default:
		c.Policy = cut.AtLeastOncePolicy()
	}
	if c.CommitInterval > 0 {
		c.Policy = c.Policy.With(c.CommitInterval)
	}
	c.Restart = c.Restart.withDefaults()
	if c.Attempts == 0 {
		c.Attempts = defaultAttempts
	}
	return c
}

func (r Restart) withDefaults() Restart {
	if r.Initial <= 0 {
		r.Initial = defaultRestartInitial
	}
	if r.Max <= 0 {
		r.Max = defaultRestartMax
	}
	if r.Limit == 0 {
		r.Limit = defaultRestartLimit
	}
	if r.Reset <= 0 {
		r.Reset = defaultRestartReset
	}
	return r
}
