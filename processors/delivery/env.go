package delivery

import (
	"errors"
	"math"
	"time"

	"github.com/turntable-streams/turntable/internal/environ"
)

// ErrEnvironment is wrapped by every error about the environment.
var ErrEnvironment = errors.New("delivery: bad environment variable")

// EnvironmentNames are the variables that OptionsFromEnv reads, FlightDeck's names where FlightDeck has them:
//
//	REPLY_RETRY_MAX_MS     for how long a delivery is tried (Service.Budget of the default service)
//	REPLY_TO_STATE_TTL_MS  route TTL
//	KAFKA_MAX_REQUEST_SIZE record limit, in bytes
func EnvironmentNames() []string { return environ.Names(variables) }

var variables = []environ.Variable[Option]{
	{Name: "REPLY_RETRY_MAX_MS", Min: 1, Max: environ.MaxMS, Option: func(ms int64) Option {
		return WithDefaultService(Service{Budget: time.Duration(ms) * time.Millisecond})
	}},
	{Name: "REPLY_TO_STATE_TTL_MS", Min: 1, Max: environ.MaxMS, Option: func(ms int64) Option {
		return func(o *options) { o.rules.RouteTTL = time.Duration(ms) * time.Millisecond }
	}},
	{Name: "KAFKA_MAX_REQUEST_SIZE", Min: minRecord, Max: math.MaxInt32, Option: func(n int64) Option { return WithRecordLimit(int(n)) }},
}

// OptionsFromEnv reads the options that the environment sets. lookup is os.LookupEnv, or a map in a test. A blank
// variable counts as unset. All bad values are named in one error.
func OptionsFromEnv(lookup func(string) (string, bool)) ([]Option, error) {
	return environ.Options(variables, lookup, ErrEnvironment)
}
