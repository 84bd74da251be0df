package delivery

import (
	"errors"
	"time"

	"github.com/turntable-streams/turntable/internal/envoption"
)

// ErrEnvironment is wrapped by every error of OptionsFromEnv.
var ErrEnvironment = errors.New("delivery: bad environment variable")

// EnvironmentNames returns the names of the variables that OptionsFromEnv reads. They are FlightDeck's
// names, if FlightDeck has the setting:
//
//	REPLY_RETRY_MAX_MS      how long a delivery is retried, in ms (Service.Budget of the default service)
//	REPLY_TO_STATE_TTL_MS   how long an unused reply route is kept, in ms (the first value of WithRoutes)
//	KAFKA_MAX_REQUEST_SIZE  record limit, in bytes (WithRecordLimit)
func EnvironmentNames() []string { return envoption.Names(variables) }

var variables = []envoption.Variable[Option]{
	{Name: "REPLY_RETRY_MAX_MS", Min: 1, Max: envoption.MaxMS, Option: func(ms int64) Option {
		return WithDefaultService(Service{Budget: time.Duration(ms) * time.Millisecond})
	}},
	envoption.RouteTTL(func(ttl time.Duration) Option { return func(o *options) { o.rules.RouteTTL = ttl } }),
	envoption.RecordLimit(WithRecordLimit),
}

// OptionsFromEnv returns the options that the environment sets. lookup is os.LookupEnv, or reads a map in a test. A blank
// variable counts as unset. One error names all invalid variables and wraps ErrEnvironment.
func OptionsFromEnv(lookup func(string) (string, bool)) ([]Option, error) {
	return envoption.Options(variables, lookup, ErrEnvironment)
}
