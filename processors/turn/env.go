package turn

import (
	"errors"
	"math"
	"time"

	"github.com/turntable-streams/turntable/internal/envoption"
)

// ErrEnvironment is wrapped by every error that ConfigFromEnv returns.
var ErrEnvironment = errors.New("turn: bad environment variable")

// EnvironmentNames returns the names of the variables that ConfigFromEnv reads. FlightDeck's names are used where they
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

func duration(name string, field func(*Config) *time.Duration) envoption.Variable[func(*Config)] {
	return envoption.Milliseconds(name, envoption.Field(field))
}

func count(name string, least int64, field func(*Config) *int) envoption.Variable[func(*Config)] {
	set := envoption.Field(field)
	return envoption.Variable[func(*Config)]{Name: name, Min: least, Max: math.MaxInt32, Option: func(n int64) func(*Config) { return set(int(n)) }}
}

var variables = []envoption.Variable[func(*Config)]{
	duration("THINK_TIMEOUT_MS", func(c *Config) *time.Duration { return &c.ThinkTimeout }),
	duration("THINK_SUPERSEDE_AFTER_MS", func(c *Config) *time.Duration { return &c.SupersedeAfter }),
	duration("ASYNC_TOOL_TIMEOUT_MS", func(c *Config) *time.Duration { return &c.ToolTimeout }),
	duration("TOOL_AGG_TOMBSTONE_TTL_MS", func(c *Config) *time.Duration { return &c.RememberFor }),
	envoption.RouteTTL(envoption.Field(func(c *Config) *time.Duration { return &c.RouteTTL })),
	count("HISTORY_MAX_BYTES", minHistory, func(c *Config) *int { return &c.HistoryLimit.Bytes }),
	count("HISTORY_MAX_MESSAGES", 1, func(c *Config) *int { return &c.HistoryLimit.Messages }),
	envoption.CompactionTimeout(func(d time.Duration) func(*Config) {
		return func(c *Config) { c.Compaction = &Compaction{Timeout: d} }
	}),
	count("THINK_MAX_STEPS", 1, func(c *Config) *int { return &c.MaxSteps }),
	{Name: "BUDGET_PRICE_PER_SESSION", Decimal: envoption.Field(func(c *Config) *float64 { return &c.MaxCost })},
	duration("SESSION_IDLE_PURGE_MS", func(c *Config) *time.Duration { return &c.IdlePurge }),
	envoption.RecordLimit(envoption.Field(func(c *Config) *int { return &c.RecordLimit })),
}

// ConfigFromEnv returns a Config with the fields that the environment sets. lookup is os.LookupEnv, or a map lookup in a test. A
// blank variable counts as unset. One error, which wraps ErrEnvironment, names all invalid values.
func ConfigFromEnv(lookup func(string) (string, bool)) (Config, error) {
	return envoption.Read(variables, lookup, ErrEnvironment)
}
