package updater

import (
	"errors"
	"time"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors/internal/responder"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// ErrConfig is wrapped by the errors of New and Run about an invalid configuration. They name the field.
var ErrConfig = errors.New("updater: invalid configuration")

// Config configures New. Fields that are zero have their defaults.
type Config struct {
	// Config is that of the worker that reads the snapshots. Its Timeout, Limits, DeadLetter and Drop must be zero. What differs:
	//
	// Group is "{agent}-memoir-updater" by default.
	//
	// Concurrency is how many calls of the updater run at a time (default 4: no one waits for a memory, and the calls share the
	// provider's limits with the turns).
	//
	// Retry says when the updater is called again after a failure. If Retryable is nil, an error with a method
	// RetryAfter() time.Duration is retried, and the wait is at least that long. The updater is not called again if it panicked or
	// answered too late, or if the wait does not end before the deadline.
	worker.Config
	// Timeout is how long after the timestamp of its record a snapshot may be answered (at least 1 ms). By default, it has the
	// deadline in the header turntable.deadline, or 30 minutes without that header. If both are set, the earlier deadline applies. A
	// snapshot that is already too old goes to memoir-dlq without a call.
	Timeout time.Duration
	// Limit is the longest memory in bytes (default 64 KiB). It must not exceed that of the group of the memories, which would
	// refuse a longer one.
	Limit int
	// RememberFor, RememberCount and RememberBytes limit the age, number and total bytes of the records that are kept in memory and
	// published again when their snapshot is repeated (default 24 hours, 10,000 and 64 MiB). The oldest are evicted first; one larger than
	// RememberBytes is not kept. For a repeat whose record is no longer kept, the updater is called again.
	RememberFor   time.Duration
	RememberCount int
	RememberBytes int64
	// Metrics are told what the calls used (default: none).
	Metrics Metrics
}

// rules are a complete Config.
type rules struct {
	responder.Settings
	limit   int
	metrics Metrics
}

func (c Config) rules(catalog topics.Catalog) rules {
	r := rules{limit: c.Limit, metrics: c.Metrics, Settings: responder.NewSettings(c.Config, c.Timeout,
		responder.Bounds{Age: c.RememberFor, Count: c.RememberCount, Bytes: c.RememberBytes}, responder.Defaults{
			Invalid: ErrConfig, Group: catalog.MemoirGroup(), Archive: catalog.Archive(), Concurrency: 4, Timeout: 30 * time.Minute, Transient: transient,
		})}
	bounds.AtLeast(&r.Check, "Limit", &r.limit, 64<<10, 1)
	return r
}

// transient reports whether an error says that a later call may succeed.
func transient(err error) bool {
	var later interface{ RetryAfter() time.Duration }
	return errors.As(err, &later)
}
