package turn

import (
	"errors"
	"math"
	"time"

	"github.com/turntable-streams/turntable/internal/envoption"
)

// ErrEnvironment is wrapped by every error that OptionsFromEnv returns.
var ErrEnvironment = errors.New("turn: bad environment variable")

// EnvironmentNames returns the names of the variables that OptionsFromEnv reads. FlightDeck's names are used where they
// exist:
//
//	THINK_TIMEOUT_MS           think timeout
//	THINK_SUPERSEDE_AFTER_MS   how long a step may be silent while a message waits; unset: as long as the think timeout
//	ASYNC_TOOL_TIMEOUT_MS      tool timeout
//	TOOL_AGG_TOMBSTONE_TTL_MS  how long finished ids are remembered
//	REPLY_TO_STATE_TTL_MS      route TTL
//	HISTORY_MAX_BYTES          history limit in bytes
//	HISTORY_MAX_MESSAGES       history limit in messages
//	COMPACTION_TIMEOUT_MS      how long a turn waits for a summary; unset: no compactor
//	THINK_MAX_STEPS            step limit of a turn
//	BUDGET_PRICE_PER_SESSION   cost limit of a session, in dollars
//	SESSION_IDLE_PURGE_MS      how long a session may be idle before it is removed
//	KAFKA_MAX_REQUEST_SIZE     record limit, in bytes
func EnvironmentNames() []string { return envoption.Names(variables) }

func duration(with func(time.Duration) Option) func(int64) Option {
	return func(ms int64) Option { return with(time.Duration(ms) * time.Millisecond) }
}

var variables = []envoption.Variable[Option]{
	{Name: "THINK_TIMEOUT_MS", Min: 1, Max: envoption.MaxMS, Option: duration(WithThinkTimeout)},
	{Name: "THINK_SUPERSEDE_AFTER_MS", Min: 1, Max: envoption.MaxMS, Option: duration(WithSupersede)},
	{Name: "ASYNC_TOOL_TIMEOUT_MS", Min: 1, Max: envoption.MaxMS, Option: duration(WithToolTimeout)},
	{Name: "TOOL_AGG_TOMBSTONE_TTL_MS", Min: 1, Max: envoption.MaxMS, Option: duration(func(d time.Duration) Option {
		return func(o *options) { o.rules.RememberFor = d }
	})},
	envoption.RouteTTL(WithRouteTTL),
	{Name: "HISTORY_MAX_BYTES", Min: minHistory, Max: math.MaxInt32, Option: func(n int64) Option {
		return func(o *options) { o.rules.History.Bytes = int(n) }
	}},
	{Name: "HISTORY_MAX_MESSAGES", Min: 1, Max: math.MaxInt32, Option: func(n int64) Option {
		return func(o *options) { o.rules.History.Messages = int(n) }
	}},
	envoption.CompactionTimeout(func(d time.Duration) Option { return WithCompaction(Compaction{Timeout: d}) }),
	{Name: "THINK_MAX_STEPS", Min: 1, Max: math.MaxInt32, Option: func(n int64) Option { return WithMaxSteps(int(n)) }},
	{Name: "BUDGET_PRICE_PER_SESSION", Decimal: WithMaxCost},
	{Name: "SESSION_IDLE_PURGE_MS", Min: 1, Max: envoption.MaxMS, Option: duration(WithIdlePurge)},
	envoption.RecordLimit(WithRecordLimit),
}

// OptionsFromEnv returns the options that the environment sets. lookup is os.LookupEnv, or a map lookup in a test. A blank
// variable counts as unset. One error, which wraps ErrEnvironment, names all invalid values.
func OptionsFromEnv(lookup func(string) (string, bool)) ([]Option, error) {
	return envoption.Options(variables, lookup, ErrEnvironment)
}
