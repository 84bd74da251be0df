// Package envoption reads options of a capability from environment variables that are numbers.
package envoption

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// MaxMS is the longest duration in milliseconds: half of the largest time.Duration, because it is added to a time.
const MaxMS = math.MaxInt64 / int64(time.Millisecond) / 2

// Variable is an environment variable and the option of type O that it sets: a whole number from Min to Max or, if Decimal
// is set, a positive decimal number.
type Variable[O any] struct {
	Name     string
	Min, Max int64
	Option   func(int64) O
	Decimal  func(float64) O
}

// Milliseconds is a variable of a duration, in milliseconds.
func Milliseconds[O any](name string, option func(time.Duration) O) Variable[O] {
	return Variable[O]{Name: name, Min: 1, Max: MaxMS, Option: func(ms int64) O { return option(time.Duration(ms) * time.Millisecond) }}
}

// RouteTTL is the variable of the lifetime of a reply route in milliseconds, which several packages read.
func RouteTTL[O any](option func(time.Duration) O) Variable[O] {
	return Milliseconds("REPLY_TO_STATE_TTL_MS", option)
}

// CompactionTimeout is the variable of how long a turn waits for a compactor, in milliseconds, which several packages read.
func CompactionTimeout[O any](option func(time.Duration) O) Variable[O] {
	return Milliseconds("COMPACTION_TIMEOUT_MS", option)
}

const (
	// DefaultRecordLimit is the default of the largest record that a capability writes, in bytes: Kafka's default of
	// max.request.size. Rows are smaller.
	DefaultRecordLimit = 1 << 20
	// MinRecordLimit is the smallest limit that a user can set.
	MinRecordLimit = 128 << 10
)

// RecordLimit is the variable of the largest record in bytes, which several packages read.
func RecordLimit[O any](option func(bytes int) O) Variable[O] {
	return Variable[O]{
		Name: "KAFKA_MAX_REQUEST_SIZE", Min: MinRecordLimit, Max: math.MaxInt32,
		Option: func(n int64) O { return option(int(n)) },
	}
}

// Names returns the names of variables, in their order.
func Names[O any](variables []Variable[O]) []string {
	names := make([]string, len(variables))
	for i, v := range variables {
		names[i] = v.Name
	}
	return names
}

// Field makes the option that sets a field of a configuration.
func Field[C, T any](field func(*C) *T) func(T) func(*C) {
	return func(value T) func(*C) { return func(c *C) { *field(c) = value } }
}

// Read returns a configuration with the fields that the environment sets. Its errors are those of Options.
func Read[C any](variables []Variable[func(*C)], lookup func(string) (string, bool), bad error) (c C, err error) {
	changes, err := Options(variables, lookup, bad)
	for _, change := range changes {
		change(&c)
	}
	return c, err
}

// Options returns the options that the environment sets. A blank variable counts as unset. All invalid values are reported
// in one error, which wraps bad; the valid options are returned too.
func Options[O any](variables []Variable[O], lookup func(string) (string, bool), bad error) ([]O, error) {
	var opts []O
	var errs []error
	for _, v := range variables {
		text, _ := lookup(v.Name)
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		option, err := v.parse(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("%w: %s: %w", bad, v.Name, err))
			continue
		}
		opts = append(opts, option)
	}
	return opts, errors.Join(errs...)
}

func (v Variable[O]) parse(text string) (option O, err error) {
	if v.Decimal != nil {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || !(x > 0) || math.IsInf(x, 0) {
			return option, errors.New("want a positive number")
		}
		return v.Decimal(x), nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < v.Min || n > v.Max {
		return option, fmt.Errorf("want a whole number from %d to %d", v.Min, v.Max)
	}
	return v.Option(n), nil
}
