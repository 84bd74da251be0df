package delivery

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ErrEnvironment is wrapped by every error about the environment.
var ErrEnvironment = errors.New("delivery: bad environment variable")

// EnvironmentNames are the variables that OptionsFromEnv reads, FlightDeck's names where FlightDeck has them:
//
//	REPLY_RETRY_MAX_MS     for how long a delivery is tried (Service.Budget of the default service)
//	REPLY_TO_STATE_TTL_MS  route TTL
//	KAFKA_MAX_REQUEST_SIZE record limit, in bytes
func EnvironmentNames() []string {
	names := make([]string, len(variables))
	for i, v := range variables {
		names[i] = v.name
	}
	return names
}

type variable struct {
	name     string
	min, max int64
	option   func(int64) Option
}

const maxMS = math.MaxInt64 / int64(time.Millisecond) / 2 // half: it is added to the time

var variables = []variable{
	{"REPLY_RETRY_MAX_MS", 1, maxMS, func(ms int64) Option {
		return WithDefaultService(Service{Budget: time.Duration(ms) * time.Millisecond})
	}},
	{"REPLY_TO_STATE_TTL_MS", 1, maxMS, func(ms int64) Option {
		return func(o *options) { o.rules.RouteTTL = time.Duration(ms) * time.Millisecond }
	}},
	{"KAFKA_MAX_REQUEST_SIZE", minRecord, math.MaxInt32, func(n int64) Option { return WithRecordLimit(int(n)) }},
}

// OptionsFromEnv reads the options that the environment sets. lookup is os.LookupEnv, or a map in a test. A blank
// variable counts as unset. All bad values are named in one error.
func OptionsFromEnv(lookup func(string) (string, bool)) ([]Option, error) {
	var opts []Option
	var errs []error
	for _, v := range variables {
		text, _ := lookup(v.name)
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < v.min || n > v.max {
			errs = append(errs, fmt.Errorf("%w: %s=%q, want a whole number from %d to %d",
				ErrEnvironment, v.name, text, v.min, v.max))
			continue
		}
		opts = append(opts, v.option(n))
	}
	return opts, errors.Join(errs...)
}
