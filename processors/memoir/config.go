package memoir

import (
	"errors"
	"time"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/envoption"
)

// ErrConfig is wrapped by the errors of Graph about a Config. They name each field that is out of its bounds.
var ErrConfig = errors.New("memoir: invalid configuration")

// Config configures Graph. Fields that are zero have their defaults.
type Config struct {
	// Limit is the longest memory of a user in bytes (default 64 KiB, at least 1 KiB, at most half of RecordLimit). A longer one
	// is dead-lettered and counts as a failed pass. It must be turn.Memoir.ContextBytes: records for the model have room for that
	// much. If a memory does not fit, the model gets the lines that do.
	Limit int
	// PassTimeout is how long a worker may take to update a memory, from the snapshot until its memory (default 30 minutes, at
	// least 1 ms). After that the pass has failed. Snapshots have the time in the header topics.HeaderDeadline.
	PassTimeout time.Duration
	// Passes is how many passes of an ended session may fail (default 3, at least 1): a worker gave up, wrote a memory that is too
	// long, or wrote none in time. The snapshot is then dead-lettered with the reason, and its conversation is not in the memory. A
	// pass that was based on an old version of the memory does not count; 100 of them are the limit.
	Passes int
	// Patience is how long an ended session waits for the memory of another one of its user before its snapshot is sent (default
	// 10 seconds; negative: none, it is sent at once). A short wait saves a model call, because a memory that is based on an old one
	// is made again. It is also how late the readers of snapshots learn of an end.
	Patience time.Duration
	// Backoff is how long an ended session waits after its first failed pass (default 1 minute, at least 1 ms). The wait doubles
	// with each further one, up to 1 hour. Other ended sessions of the user go first meanwhile.
	Backoff time.Duration
	// PendingLimit is how many ended sessions of a user are kept until they are in the memory (default 64, 1 to 1000). Each has its
	// snapshot stored. The first snapshot of further ones is sent all the same: the oldest session that has been sent is
	// dead-lettered instead. Sessions that fill a quarter of a record in the row are treated the same way, which concerns groups
	// under plain goka.NewProcessor, whose rows contain the snapshots.
	PendingLimit int
	// RememberFor is for how long a user's row remembers which ended sessions and records it has handled (default 7 days, at least
	// 1 ms), and RememberCount how many of them together (default 1000, 1 to 4000). After that, a repeat is
	// handled as new. A row without a memory is kept for RememberFor, too.
	RememberFor   time.Duration
	RememberCount int
	// RecordLimit is the largest record in bytes, including key and headers (default 1 MiB, at least 128 KiB). It must not exceed
	// the producer's max.request.size and the topics' max.message.bytes.
	RecordLimit int
}

// Bounds that are not configured.
const (
	maxConflicts = 100  // passes of a session that were based on an old version of the memory
	envelope     = 1024 // bytes of a record that are neither its key nor its value
	maxBackoff   = time.Hour
)

func (c *Config) complete() error {
	var check bounds.Check
	bounds.AtLeast(&check, "RecordLimit", &c.RecordLimit, envoption.DefaultRecordLimit, envoption.MinRecordLimit)
	bounds.Between(&check, "Limit", &c.Limit, 64<<10, 1<<10, c.RecordLimit/2)
	bounds.AtLeast(&check, "PassTimeout", &c.PassTimeout, 30*time.Minute, time.Millisecond)
	bounds.AtLeast(&check, "Passes", &c.Passes, 3, 1)
	bounds.OrNone(&c.Patience, 10*time.Second)
	bounds.AtLeast(&check, "Backoff", &c.Backoff, time.Minute, time.Millisecond)
	bounds.Between(&check, "PendingLimit", &c.PendingLimit, 64, 1, 1000)
	bounds.AtLeast(&check, "RememberFor", &c.RememberFor, 7*24*time.Hour, time.Millisecond)
	bounds.Between(&check, "RememberCount", &c.RememberCount, 1000, 1, 4000) // of 12 bytes each
	return check.Err(ErrConfig)
}

// backoff returns the wait after a number of failed passes.
func (c *Config) backoff(failures uint32) time.Duration {
	d := c.Backoff
	for ; failures > 1 && d < maxBackoff; failures-- {
		d *= 2
	}
	return max(c.Backoff, min(d, maxBackoff))
}

// ErrEnvironment is wrapped by every error of ConfigFromEnv.
var ErrEnvironment = errors.New("memoir: bad environment variable")

// EnvironmentNames returns the names of the variables that ConfigFromEnv reads:
//
//	KAFKA_MAX_REQUEST_SIZE  Config.RecordLimit, in bytes
//	MEMOIR_PASS_TIMEOUT_MS  Config.PassTimeout
func EnvironmentNames() []string { return envoption.Names(variables) }

var variables = []envoption.Variable[func(*Config)]{
	envoption.RecordLimit(envoption.Field(func(c *Config) *int { return &c.RecordLimit })),
	envoption.Milliseconds("MEMOIR_PASS_TIMEOUT_MS", envoption.Field(func(c *Config) *time.Duration { return &c.PassTimeout })),
}

// ConfigFromEnv returns a Config with the fields that the environment sets. lookup is os.LookupEnv, or reads a map in a test. A
// blank variable counts as unset. One error names all invalid variables and wraps ErrEnvironment.
func ConfigFromEnv(lookup func(string) (string, bool)) (Config, error) {
	return envoption.Read(variables, lookup, ErrEnvironment)
}
