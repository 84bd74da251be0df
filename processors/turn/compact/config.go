package compact

import (
	"errors"
	"time"

	"github.com/turntable-streams/turntable/processors/internal/responder"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// ErrConfig is wrapped by the errors of New and Run about an invalid configuration. They name the field.
var ErrConfig = errors.New("compact: invalid configuration")

// Config configures New. Fields that are zero have their defaults.
type Config struct {
	// Config is that of the worker that reads the requests. Its Timeout, Limits, DeadLetter and Drop must be zero. Group is
	// "{agent}-compactor" by default. Concurrency is how many calls of the compactor run at a time.
	worker.Config
	// Timeout is how long after the timestamp of its record a request may be answered (at least 1 ms). By default, a request has the
	// deadline of its turn, which the turn sends in the header turntable.deadline, or 10 minutes without that header. If both are
	// set, the earlier deadline applies. A request that is already too old gets an error without a call.
	Timeout time.Duration
}

func (c Config) settings(catalog topics.Catalog) responder.Settings {
	return responder.NewSettings(c.Config, c.Timeout, responder.Bounds{}, responder.Defaults{
		Invalid: ErrConfig, Group: catalog.CompactGroup(), Archive: catalog.Archive(), Concurrency: 16, Timeout: 10 * time.Minute,
	})
}
