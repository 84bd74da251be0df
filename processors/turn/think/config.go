package think

import (
	"errors"
	"time"

	"github.com/turntable-streams/turntable/processors/internal/responder"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// ErrConfig is wrapped by the errors of New and Run about an invalid configuration. They name the field.
var ErrConfig = errors.New("think: invalid configuration")

// Config configures New. Fields that are zero have their defaults.
type Config struct {
	// Config is that of the worker that reads the steps. Its Limits, Timeout, DeadLetter and Drop must be zero. What differs:
	//
	// Group is "{agent}-think-consumer" by default, the group of FlightDeck's model workers.
	//
	// Concurrency is how many calls of the model run at a time.
	//
	// Retry says when a step's model is called again after a failure. If Retryable is nil, an Unavailable is retried. The wait is
	// at least Unavailable.After. A model is not called again if it panicked or answered too late, or if the wait does not end before
	// the step's deadline; the step then fails with the model's error. The attempts of earlier processes count: in a consumer group
	// the failed calls, in a share group the deliveries of the step. A step that waits for a retry does not count toward
	// Concurrency, and each attempt needs the limits again.
	//
	// Waiting is how many steps wait for a limit in this worker (default four times Concurrency, at most ReadAhead).
	//
	// Grace is how long calls of the model may keep running after the worker stops. Then they are interrupted, and the model is
	// called again after the redelivery.
	worker.Config
	// Timeout is how long after the timestamp of its record a step may be answered (at least 1 ms). By default, a step has the
	// deadline of its turn, which the turn sends in the header turntable.deadline, or 10 minutes without that header (a step of
	// another pipeline). If both are set, the earlier deadline applies. A step that is already too old fails without a call of the
	// model.
	Timeout time.Duration
	// ModelLimit bounds the calls of each model in this process (default: none). A step that waits delays no step of another model,
	// and sessions take turns. A step whose deadline passes while it waits fails.
	//
	// Independently of this field, a model whose provider limits the rate (an Unavailable with RateLimit or After) is not called
	// again until Unavailable.After has passed, or one second if it is 0; other models are.
	ModelLimit ModelLimit
	// Limits bound the calls by further keys, for example by tenant (default: none).
	Limits []Limit
	// RememberFor, RememberCount and RememberBytes limit the age, number and total bytes of the records that are kept in memory and
	// published again when their step is repeated (default 24 hours, 10,000 and 64 MiB). The oldest records are evicted first; a
	// record larger than RememberBytes is not kept. For a repeat whose record is no longer kept, the model is called again.
	RememberFor   time.Duration
	RememberCount int
	RememberBytes int64
}

// rules are a complete Config.
type rules struct {
	responder.Settings
	model  ModelLimit
	limits []Limit
}

func (c Config) rules(catalog topics.Catalog) rules {
	r := rules{model: c.ModelLimit, limits: c.Limits, Settings: responder.NewSettings(c.Config, c.Timeout,
		responder.Bounds{Age: c.RememberFor, Count: c.RememberCount, Bytes: c.RememberBytes}, responder.Defaults{
			Invalid: ErrConfig, Group: catalog.ThinkGroup(), Archive: catalog.Archive(), Concurrency: 16, Timeout: 10 * time.Minute, Transient: transient,
		})}
	if l := r.model; l.Concurrency < 0 || l.RequestsPerMinute < 0 || l.TokensPerMinute < 0 {
		r.Wrong("ModelLimit", "has a negative number")
	}
	if r.model.Tokens != nil && r.model.TokensPerMinute == 0 {
		r.Wrong("ModelLimit", "has Tokens, which needs TokensPerMinute")
	}
	responder.CheckLimits(&r.Settings, r.limits)
	return r
}
