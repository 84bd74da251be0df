// Package bounds completes and checks configurations: a field that is zero gets its default, any other value must be within the
// bounds of the field.
package bounds

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Check collects what is wrong with a configuration. Its zero value is ready for use.
type Check struct {
	errs []error
}

// Between gives a zero field its default. Any other value must be least to most.
func Between[T cmp.Ordered](c *Check, name string, field *T, byDefault, least, most T) {
	var zero T
	switch {
	case *field == zero:
		*field = byDefault
	case *field < least || *field > most:
		c.Wrong(name, "is %v, want %v to %v", *field, least, most)
	}
}

// AtLeast gives a zero field its default. Any other value must be least or more.
func AtLeast[T cmp.Ordered](c *Check, name string, field *T, byDefault, least T) {
	var zero T
	switch {
	case *field == zero:
		*field = byDefault
	case *field < least:
		c.Wrong(name, "is %v, want at least %v", *field, least)
	}
}

// OrNone gives a zero field its default. Any negative value means none, and becomes -1, so that completing a configuration again
// changes nothing.
func OrNone[T int | int64 | float64 | time.Duration](field *T, byDefault T) {
	if *field == 0 {
		*field = byDefault
	}
	*field = max(*field, -1)
}

// Wrong says what is wrong with a field. The text follows the field's name, and may wrap an error with %w.
func (c *Check) Wrong(name, format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(name+" "+format, args...))
}

// Err returns an error that wraps invalid and names every field that is out of its bounds, nil if there is none.
func (c *Check) Err(invalid error) error {
	if len(c.errs) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", invalid, errors.Join(c.errs...))
}
