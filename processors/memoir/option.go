package memoir

import (
	"errors"
	"time"

	"github.com/turntable-streams/turntable/internal/envoption"
)

// Option sets a rule of Graph, which checks the values and returns an error that names the first option that is out of range.
type Option func(*Rules)

// WithLimit sets the longest memory of a user in bytes (default 64 KiB, at least 1 KiB, at most half of the record limit). A
// longer one is dead-lettered and counts as a failed pass. It must be Memoir.ContextBytes of turn.WithMemoir: records for the
// model have room for that much. If a memory does not fit, the model gets the lines that do.
func WithLimit(bytes int) Option {
	return func(r *Rules) { r.Limit = bytes }
}

// WithPassTimeout sets how long a worker may take to update a memory, from the snapshot until its memory (default 30 minutes,
// at least 1 ms). After that the pass has failed. Snapshots have the time in the header topics.HeaderDeadline.
func WithPassTimeout(d time.Duration) Option {
	return func(r *Rules) { r.PassTimeout = d }
}

// WithPatience sets how long an ended session waits for the memory of another one of its user before its snapshot is sent
// (default 10 seconds, at least 0, which sends it at once). A short wait saves a model call, because a memory that is based on
// an old one is made again. It is also how late the readers of snapshots learn of an end.
func WithPatience(d time.Duration) Option {
	return func(r *Rules) { r.Patience = d }
}

// WithPasses sets how many passes of an ended session may fail (default 3, at least 1): a worker gave up, wrote a memory that
// is too long, or wrote none in time. The snapshot is then dead-lettered with the reason, and its conversation is not in the
// memory. A pass that was based on an old version of the memory does not count; 100 of them are the limit.
func WithPasses(n int) Option {
	return func(r *Rules) { r.Passes = n }
}

// WithBackoff sets how long an ended session waits after its first failed pass (default 1 minute, at least 1 ms). The wait
// doubles with each further one, up to 1 hour. Other ended sessions of the user go first meanwhile.
func WithBackoff(d time.Duration) Option {
	return func(r *Rules) { r.Backoff = d }
}

// WithPendingLimit sets how many ended sessions of a user are kept until they are in the memory (default 64, 1 to 1000). Each has
// its snapshot stored. The first snapshot of further ones is sent all the same: the oldest session that has been sent is
// dead-lettered instead. Sessions that fill a quarter of a record in the row are treated the same way, which concerns groups
// under plain goka.NewProcessor, whose rows contain the snapshots.
func WithPendingLimit(n int) Option {
	return func(r *Rules) { r.PendingLimit = n }
}

// WithRemembered sets for how long a user's row remembers which ended sessions and records it has handled, and how many of
// them together (default 7 days, 1000; at least 1 ms; 1 to 4000). After that, a repeat is handled as new.
func WithRemembered(d time.Duration, count int) Option {
	return func(r *Rules) { r.RememberFor, r.RememberCount = d, count }
}

// WithRecordLimit sets the largest record in bytes, including key and headers (default 1 MiB, at least 128 KiB). It must
// not exceed the producer's max.request.size and the topics' max.message.bytes.
func WithRecordLimit(bytes int) Option {
	return func(r *Rules) { r.RecordLimit = bytes }
}

func rulesOf(opts []Option) (Rules, error) {
	r := defaultRules()
	for _, opt := range opts {
		opt(&r)
	}
	return r, r.validate()
}

// ErrEnvironment is wrapped by every error of OptionsFromEnv.
var ErrEnvironment = errors.New("memoir: bad environment variable")

// EnvironmentNames returns the names of the variables that OptionsFromEnv reads:
//
//	KAFKA_MAX_REQUEST_SIZE  record limit, in bytes (WithRecordLimit)
//	MEMOIR_PASS_TIMEOUT_MS  how long a worker may take to update a memory (WithPassTimeout)
func EnvironmentNames() []string { return envoption.Names(variables) }

var variables = []envoption.Variable[Option]{
	envoption.RecordLimit(WithRecordLimit),
	{Name: "MEMOIR_PASS_TIMEOUT_MS", Min: 1, Max: envoption.MaxMS, Option: func(ms int64) Option {
		return WithPassTimeout(time.Duration(ms) * time.Millisecond)
	}},
}

// OptionsFromEnv returns the options that the environment sets. lookup is os.LookupEnv, or reads a map in a test. A blank
// variable counts as unset. One error names all invalid variables and wraps ErrEnvironment.
func OptionsFromEnv(lookup func(string) (string, bool)) ([]Option, error) {
	return envoption.Options(variables, lookup, ErrEnvironment)
}
