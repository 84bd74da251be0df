package worker

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
)

// ErrConfig is wrapped by the errors of New and Run about an invalid configuration. They name the field.
var ErrConfig = errors.New("worker: invalid configuration")

// Config configures a worker. Fields that are zero have their defaults. Packages whose workers embed it say which fields have other
// defaults, or are theirs.
type Config struct {
	// Group is the name of the share group or consumer group. New requires it.
	Group string
	// Archive is the journal of the agent whose topics are read (topics.Catalog.Archive; default: none). Run returns an error that wraps
	// topics.ErrArchive while it exists: the offsets of the group are those of topics that are being restored or moved.
	Archive string
	// Mode is how the worker gets its records (default Auto). See Mode.
	Mode Mode
	// Concurrency is how many records are handled at the same time (default 16, at least 1).
	Concurrency int
	// Timeout is how long a call of the handler may take (default: no limit). Then its context ends with context.DeadlineExceeded,
	// which counts as a failure.
	Timeout time.Duration
	// Retry says when a failed record is handled again, and how often (default 5 attempts, 500 ms to 30 s apart).
	Retry RetryPolicy
	// DeadLetter is called with a record that ends without success: its attempts failed, or the broker delivers it for the last
	// time. reason is the last failure or wraps ErrDeliveries. If it returns an error, it is called again with backoff until it
	// succeeds; then the record is settled. New requires either DeadLetter or Drop.
	DeadLetter func(ctx context.Context, r Record, reason error) error
	// Drop drops a record that ends without success and logs its topic, partition and offset. Use it for records whose loss does not
	// matter.
	Drop bool
	// Limits bound the calls of the handler by keys of their records, for example by tenant (default: Concurrency is the only
	// bound). A record whose limits do not admit it waits outside of the slots (Waiting), so that records with other keys can be
	// handled. Records with the same Kafka key are a session; sessions take turns, see Limiter. Each retry needs the limits again.
	Limits []Limit[Record]
	// Limiter applies Limits. Workers of one process can share it (default: one of its own).
	Limiter *Limiter
	// Waiting is how many records may wait for a limit or a retry, in addition to those in slots (default 0; with Limits four times
	// Concurrency; negative: none). Without Limits, use it for handlers that call Enter. Such a handler is called for more than
	// Concurrency records, so it must bound the calls that it makes. The worker holds the records in memory. A share group acquires
	// such a record only while a slot is free, or while one session occupies more than half of the slots; a consumer group reads them
	// up to ReadAhead. If that many records wait, for example for one tool that hangs, records behind them wait too.
	Waiting int
	// Grace is how long running calls may continue when the worker stops (default 10 s). Then their contexts end with ErrStopping and
	// their records are redelivered.
	Grace time.Duration
	// Lock is how long after a worker hangs or is disconnected the broker of a share group delivers its records to others (default
	// 30 s). The worker renews the lock while a call runs, so calls may take longer. Brokers allow 15 to 60 s by default. It has no
	// effect on consumer groups.
	Lock time.Duration
	// Handover is how long a running call of a consumer group may continue after its partition has moved to another worker (default
	// 1 minute). Then its context ends with ErrLost. It has no effect on share groups, where no partition moves.
	Handover time.Duration
	// ReadAhead is how many records of a partition a consumer group may read from the first one that is not settled (default 1000, at
	// least 1). It has no effect on share groups.
	ReadAhead int
	// Ordered handles records of a partition with the same key one after another, in the order of their offsets. Records without a
	// key are not ordered. It needs a consumer group: with Auto, the worker uses one.
	Ordered bool
	// InstanceID makes the worker a static member (group.instance.id): a restart within the session timeout causes no rebalance. It
	// must be unique in the group. It needs a consumer group: with Auto, the worker uses one.
	InstanceID string
	// Clock is that of retries, timeouts and ages (default: the system's). Locks and sessions of Kafka are measured by the system's.
	Clock processors.Clock
	// Logger logs (default: nothing). Values of records are not logged.
	Logger *zap.Logger
}

// waitingPerSlot is how many records may wait for each slot of a worker with limits.
const waitingPerSlot = 4

// complete fills the fields that are zero, and checks the others.
func (c *Config) complete(topics []string, handle Handler) error {
	var check bounds.Check
	bounds.AtLeast(&check, "Concurrency", &c.Concurrency, 16, 1)
	bounds.AtLeast(&check, "ReadAhead", &c.ReadAhead, 1000, 1)
	bounds.AtLeast(&check, "Timeout", &c.Timeout, 0, 1)
	bounds.AtLeast(&check, "Grace", &c.Grace, 10*time.Second, 1)
	bounds.AtLeast(&check, "Lock", &c.Lock, 30*time.Second, 1)
	bounds.AtLeast(&check, "Handover", &c.Handover, time.Minute, 1)
	c.Retry = c.Retry.withDefaults()
	if err := c.Retry.Invalid(); err != nil {
		check.Wrong("Retry", "is invalid: %w", err)
	}
	for _, l := range c.Limits {
		if err := l.Invalid(); err != nil {
			check.Wrong("Limits", "has an invalid one: %w", err)
		}
	}
	if c.Clock == nil {
		c.Clock = clock.System()
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	if len(c.Limits) > 0 {
		if c.Waiting == 0 {
			c.Waiting = waitingPerSlot * c.Concurrency
		}
		c.Limits = append([]Limit[Record]{{Name: "worker " + c.Group, Concurrency: c.Concurrency}}, c.Limits...)
		if c.Limiter == nil {
			c.Limiter = NewLimiterAt(c.Clock)
		}
	}
	c.Waiting = max(c.Waiting, 0)
	if c.Group == "" {
		check.Wrong("Group", "is empty")
	}
	if len(topics) == 0 || slices.Contains(topics, "") {
		check.Wrong("the list of topics", "is empty, or has an empty name")
	}
	if handle == nil {
		check.Wrong("the handler", "is nil")
	}
	if (c.DeadLetter == nil) != c.Drop {
		check.Wrong("DeadLetter", "or Drop must be set, one of them: say what is done with a record that ends without success")
	}
	if !slices.Contains([]Mode{Auto, ShareGroup, ConsumerGroup}, c.Mode) {
		check.Wrong("Mode", "is %d, which is none", int(c.Mode))
	}
	if c.Mode == ShareGroup && (c.Ordered || c.InstanceID != "") {
		check.Wrong("Mode", "is ShareGroup, and Ordered and InstanceID need consumer groups: share groups have neither order nor static members")
	}
	return check.Err(ErrConfig)
}
