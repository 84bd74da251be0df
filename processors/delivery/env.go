package delivery

import (
	"errors"
	"time"

	"github.com/turntable-streams/turntable/internal/envoption"
)

// ErrEnvironment is wrapped by every error of ConfigFromEnv.
var ErrEnvironment = errors.New("delivery: bad environment variable")

// EnvironmentNames returns the names of the variables that ConfigFromEnv reads. They are FlightDeck's
// names, if FlightDeck has the setting:
//
//	REPLY_RETRY_MAX_MS      Config.DefaultService.Budget
//	REPLY_TO_STATE_TTL_MS   Config.RouteTTL
//	KAFKA_MAX_REQUEST_SIZE  Config.RecordLimit, in bytes
func EnvironmentNames() []string { return envoption.Names(variables) }

var variables = []envoption.Variable[func(*Config)]{
	envoption.Milliseconds("REPLY_RETRY_MAX_MS", envoption.Field(func(c *Config) *time.Duration { return &c.DefaultService.Budget })),
	envoption.RouteTTL(envoption.Field(func(c *Config) *time.Duration { return &c.RouteTTL })),
	envoption.RecordLimit(envoption.Field(func(c *Config) *int { return &c.RecordLimit })),
}

// ConfigFromEnv returns a Config with the fields that the environment sets. lookup is os.LookupEnv, or reads a map in a test. A
// blank variable counts as unset. One error names all invalid variables and wraps ErrEnvironment.
func ConfigFromEnv(lookup func(string) (string, bool)) (Config, error) {
	return envoption.Read(variables, lookup, ErrEnvironment)
}
