// Package envoption reads the options of a capability that are whole numbers in the environment.
package envoption

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// MaxMS is the longest duration in milliseconds; half of what fits, since it is added to the time.
const MaxMS = math.MaxInt64 / int64(time.Millisecond) / 2

// Variable is an option of type O and the variable that sets it.
type Variable[O any] struct {
	Name     string
	Min, Max int64
	Option   func(int64) O
}

// Names are the variables' names.
func Names[O any](variables []Variable[O]) []string {
	names := make([]string, len(variables))
	for i, v := range variables {
		names[i] = v.Name
	}
	return names
}

// Options are those that the environment sets. A blank variable counts as unset. All bad values are named in one error,
// which wraps bad.
func Options[O any](variables []Variable[O], lookup func(string) (string, bool), bad error) ([]O, error) {
	var opts []O
	var errs []error
	for _, v := range variables {
		text, _ := lookup(v.Name)
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < v.Min || n > v.Max {
			errs = append(errs, fmt.Errorf("%w: %s=%q, want a whole number from %d to %d", bad, v.Name, text, v.Min, v.Max))
			continue
		}
		opts = append(opts, v.Option(n))
	}
	return opts, errors.Join(errs...)
}
